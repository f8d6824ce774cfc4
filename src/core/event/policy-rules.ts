import { compileGlob, type TextMatcher } from '../glob.ts'
import type { JsonObject } from '../json.ts'

/** What a moderation policy is about (client-server API, "Moderation policy lists"). */
export type PolicyEntity = 'user' | 'room' | 'server'

/** A rule of a list that bans. */
export interface BanRule {
  readonly entity: PolicyEntity
  /** A user id, room id or server name, or a glob of such. */
  readonly glob: string
  readonly reason: string
}

/** The types of rules, with those that moderation bots used before the specification had them. */
export const POLICY_TYPES: ReadonlyMap<string, PolicyEntity> = new Map([
  ['m.policy.rule.user', 'user'],
  ['m.policy.rule.room', 'room'],
  ['m.policy.rule.server', 'server'],
  ['m.room.rule.user', 'user'],
  ['m.room.rule.room', 'room'],
  ['m.room.rule.server', 'server'],
  ['org.matrix.mjolnir.rule.user', 'user'],
  ['org.matrix.mjolnir.rule.room', 'room'],
  ['org.matrix.mjolnir.rule.server', 'server'],
])

const BANS: ReadonlySet<unknown> = new Set([
  'm.ban',
  'org.matrix.mjolnir.ban',
  'm.takedown',
  'org.matrix.msc4204.takedown',
])
const MAX_GLOB_CHARS = 512
const MAX_REASON_CHARS = 500

/** The ban in a state event; undefined for other recommendations, and for what is no rule. */
export function readBan(type: string, content: JsonObject): BanRule | undefined {
  const entity = POLICY_TYPES.get(type)
  const { entity: glob, recommendation, reason } = content
  if (entity === undefined || typeof glob !== 'string' || glob === '' || glob.length > MAX_GLOB_CHARS) return undefined
  if (!BANS.has(recommendation)) return undefined
  return { entity, glob, reason: typeof reason === 'string' ? reason.slice(0, MAX_REASON_CHARS) : '' }
}

/** Rules that are in force. */
export interface Bans {
  /** The rule that bans a user id, room id or server name; undefined if none does. Takes time linear in the text for each glob. */
  of(entity: PolicyEntity, text: string): BanRule | undefined
  readonly size: number
}

interface Compiled {
  readonly plain: Map<string, BanRule>
  readonly globs: { readonly matches: TextMatcher; readonly rule: BanRule }[]
}

const SPECIAL = /[*?]/

/** Compiles rules. Of globs only the first so many count; texts without `*` and `?` cost a look into a map. */
export function compileBans(rules: readonly BanRule[], maxGlobs: number): Bans {
  const of: Record<PolicyEntity, Compiled> = {
    user: { plain: new Map(), globs: [] },
    room: { plain: new Map(), globs: [] },
    server: { plain: new Map(), globs: [] },
  }
  let globs = 0
  for (const rule of rules) {
    const { plain, globs: some } = of[rule.entity]
    if (!SPECIAL.test(rule.glob)) plain.set(rule.glob.toLowerCase(), rule)
    else if (globs++ < maxGlobs) some.push({ matches: compileGlob(rule.glob), rule })
  }
  return {
    size: rules.length,
    of(entity, text) {
      const { plain, globs: some } = of[entity]
      return plain.get(text.toLowerCase()) ?? some.find(({ matches }) => matches(text))?.rule
    },
  }
}

/** Names that have nothing in common: a rule that matches two of them matches everybody. */
const STRANGERS: Readonly<Record<PolicyEntity, readonly [string, string]>> = {
  user: ['@qx7w-first.one:alpha.invalid', '@82.other_name:second.test.example'],
  room: ['!qXbWfRsT:alpha.invalid', '!82OtherName:second.test.example'],
  server: ['alpha.invalid', 'second.test.example'],
}

/** The rule that bans everybody, every room or every server, or this server itself; undefined if there is none. */
export function overreachingRule(rules: readonly BanRule[], ownServer: string): BanRule | undefined {
  return rules.find(({ entity, glob }) => {
    const matches = compileGlob(glob)
    const isEverybody = STRANGERS[entity].every((stranger) => matches(stranger))
    const isOwn =
      entity === 'server' ? matches(ownServer) : STRANGERS[entity].some((one) => matches(atHome(one, ownServer)))
    return isEverybody || isOwn
  })
}

const atHome = (id: string, server: string): string => `${id.slice(0, id.indexOf(':'))}:${server}`
