import { compileServerAcl } from './acl.ts'

/** The servers that this one talks to, in and out. */
export interface ServerPolicy {
  /** Why a server is refused, in words that name the option. Undefined if it is allowed. */
  refusalOf(server: string): string | undefined
}

/** A policy whose rules can be replaced at run time. */
export interface LiveServerPolicy extends ServerPolicy {
  use(rules: ServerRules): void
}

export interface ServerRules {
  readonly enabled: boolean
  /** Globs of allowed server names without ports; if empty, every server is allowed. */
  readonly allow: readonly string[]
  /** Globs of servers that are refused even if `allow` matches. */
  readonly deny: readonly string[]
}

export const EVERY_SERVER_WELCOME: ServerPolicy = { refusalOf: () => undefined }

const MAX_REMEMBERED = 20_000

/** @param own this server's name, which is always allowed */
export function createServerPolicy(rules: ServerRules, own: string): LiveServerPolicy {
  let inForce = compileServerPolicy(rules, own)
  return {
    refusalOf: (server) => inForce.refusalOf(server),
    use(next) {
      inForce = compileServerPolicy(next, own)
    },
  }
}

export function compileServerPolicy(rules: ServerRules, own: string): ServerPolicy {
  if (rules.enabled && rules.allow.length === 0 && rules.deny.length === 0) return EVERY_SERVER_WELCOME
  const known = new Map<string, string | undefined>()
  const denies = compileServerAcl({ allow: ['*'], deny: [...rules.deny] })
  const allows = compileServerAcl({ allow: rules.allow.length > 0 ? [...rules.allow] : ['*'] })
  const option = (server: string): string | undefined => {
    if (!rules.enabled) return 'federation.enabled is false'
    if (!denies.allows(server)) return 'federation.deny names it'
    return allows.allows(server) ? undefined : 'federation.allow does not name it'
  }
  function judge(server: string): string | undefined {
    const reason = server === own ? undefined : option(server)
    return reason && `This server has nothing to do with ${server}: ${reason}.`
  }

  return {
    refusalOf(server) {
      if (known.has(server)) return known.get(server)
      const refusal = judge(server)
      // Cached, because it is called for every server of a room with each event.
      if (known.size >= MAX_REMEMBERED) known.clear()
      known.set(server, refusal)
      return refusal
    },
  }
}
