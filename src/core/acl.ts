import { compileGlobs, type TextMatcher } from './glob.ts'
import { splitServerName } from './ids.ts'
import type { JsonObject, JsonValue } from './json.ts'

/** The servers that may take part in a room, by `m.room.server_acl`. */
export interface ServerAcl {
  readonly allows: (serverName: string) => boolean
}

const EVERY_SERVER: ServerAcl = { allows: () => true }

const IPV4 = /^(?:[0-9]{1,3}\.){3}[0-9]{1,3}$/

/** Answers kept per ACL: a room's servers ask over and over. Emptied when full. */
const REMEMBERED_HOSTS = 1000

/**
 * Compiles the content of `m.room.server_acl`; undefined when the room has none, which lets every server in.
 *
 * Ports are ignored. A list that is absent or malformed counts as empty, so a malformed `allow` shuts everyone out,
 * as the specification warns. Text that is not a server name is never allowed.
 */
export function compileServerAcl(content: JsonObject | undefined): ServerAcl {
  if (content === undefined) return EVERY_SERVER
  const denied = anyOf(content.deny)
  const allowed = anyOf(content.allow)
  const refusesIpLiterals = content.allow_ip_literals === false
  const judge = (host: string) => !(refusesIpLiterals && isIpLiteral(host)) && !denied(host) && allowed(host)
  return { allows: remembering(judge) }
}

function remembering(judge: (host: string) => boolean): ServerAcl['allows'] {
  const verdicts = new Map<string, boolean>()
  return (serverName) => {
    const host = splitServerName(serverName)?.host.toLowerCase()
    if (host === undefined) return false
    const known = verdicts.get(host)
    if (known !== undefined) return known
    if (verdicts.size >= REMEMBERED_HOSTS) verdicts.clear()
    const verdict = judge(host)
    verdicts.set(host, verdict)
    return verdict
  }
}

function anyOf(globs: JsonValue | undefined): TextMatcher {
  return compileGlobs(Array.isArray(globs) ? globs.filter((glob) => typeof glob === 'string') : [])
}

function isIpLiteral(host: string): boolean {
  return host.startsWith('[') || IPV4.test(host)
}
