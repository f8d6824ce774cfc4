import { compileText, FoldedText, type TextPattern } from '../glob.ts'
import { splitServerName } from '../ids.ts'
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
  /**
   * The rule that bans a user id, room id or server name; undefined if none does. A server is banned with all its ports. Takes time linear
   * in the text for each glob.
   */
  of(entity: PolicyEntity, text: string): BanRule | undefined
  readonly size: number
  /** How many rules do not count, because there are too many globs or they take too long to compare. */
  readonly left: number
}

/** What comparing a text with all globs may cost. */
export interface GlobBounds {
  readonly globs: number
  /** Characters compared for each character of the text, by all globs together. */
  readonly steps: number
}

interface CompiledGlob {
  readonly pattern: TextPattern
  readonly rule: BanRule
}

interface Compiled {
  readonly plain: Map<string, BanRule>
  readonly globs: CompiledGlob[]
}

const SPECIAL = /[*?]/
const ONE_CHARACTER = new FoldedText('x')

/** Compiles rules. Of globs only as many count as the bounds allow, the first ones; texts without `*` and `?` cost a look into a map. */
export function compileBans(rules: readonly BanRule[], bounds: GlobBounds): Bans {
  const of: Record<PolicyEntity, Compiled> = {
    user: { plain: new Map(), globs: [] },
    room: { plain: new Map(), globs: [] },
    server: { plain: new Map(), globs: [] },
  }
  let [globs, steps, left] = [0, 0, 0]
  for (const rule of rules) {
    const { plain, globs: some } = of[rule.entity]
    if (!SPECIAL.test(rule.glob)) {
      plain.set(rule.glob.toLowerCase(), rule)
      continue
    }
    const pattern = compileText(rule.glob, 'whole')
    const cost = pattern.steps(ONE_CHARACTER)
    if (globs >= bounds.globs || steps + cost > bounds.steps) {
      left++
      continue
    }
    globs++
    steps += cost
    some.push({ pattern, rule })
  }

  function match({ plain, globs: some }: Compiled, text: string): BanRule | undefined {
    const folded = new FoldedText(text)
    return plain.get(folded.folded) ?? some.find(({ pattern }) => pattern.matches(folded))?.rule
  }

  return {
    size: rules.length,
    left,
    of(entity, text) {
      for (const name of namesOf(entity, text)) {
        const rule = match(of[entity], name)
        if (rule) return rule
      }
      return undefined
    },
  }
}

/** A rule about a host is about all that runs there, whatever the port. */
function namesOf(entity: PolicyEntity, text: string): readonly string[] {
  const named = entity === 'server' ? splitServerName(text) : undefined
  return named?.port === undefined ? [text] : [text, named.host]
}

/** What names begin with. */
const INITIALS = [...'abcdefghijklmnopqrstuvwxyz0123456789']
const HASH = 'q4vWZ0aYxKcE1uD7sGmB2nT8oHfL5iJpC3eV6kXwMQ'

/**
 * Names that have nothing in common, one for each first character: rules that match half of them ban everybody. Room ids are of
 * both kinds, with a server and without.
 */
function strangersOf(entity: PolicyEntity, server?: string): readonly FoldedText[] {
  return INITIALS.map((initial, index) => {
    const ending = index % 2 === 0 ? 'z7' : '_x-one.k'
    const host = server ?? `${initial}${index % 3 === 0 ? 'rs.tld' : '-y9.test.example'}`
    if (entity === 'server') return new FoldedText(host)
    if (entity === 'user') return new FoldedText(`@${initial}${ending}:${host}`)
    return new FoldedText(index % 2 === 0 ? `!${initial}${ending}RfTw:${host}` : `!${initial}${HASH}`)
  })
}

const STRANGERS: Readonly<Record<PolicyEntity, readonly FoldedText[]>> = {
  user: strangersOf('user'),
  room: strangersOf('room'),
  server: strangersOf('server'),
}

/**
 * The rule because of which a list is not enforced: one that bans this server, or one that bans everybody, every room, every server or all
 * users of this server, alone or together with those before it. Undefined if there is none.
 *
 * @param maxGlobs as many as may be in force
 */
export function overreachingRule(rules: readonly BanRule[], ownServer: string, maxGlobs: number): BanRule | undefined {
  const ownNames = namesOf('server', ownServer).map((name) => new FoldedText(name))
  const globs: CompiledGlob[] = []
  for (const rule of rules) {
    const isWide = SPECIAL.test(rule.glob)
    if (isWide && globs.length >= maxGlobs) continue
    if (!isWide && rule.entity !== 'server') continue
    const pattern = compileText(rule.glob, 'whole')
    if (rule.entity === 'server' && ownNames.some((name) => pattern.matches(name))) return rule
    if (isWide) globs.push({ pattern, rule })
  }
  const of = (entity: PolicyEntity) => globs.filter(({ rule }) => rule.entity === entity)
  return (
    tooMany(of('user'), STRANGERS.user) ??
    tooMany(of('user'), strangersOf('user', ownServer)) ??
    tooMany(of('room'), STRANGERS.room) ??
    tooMany(of('server'), STRANGERS.server)
  )
}

/** The rule with which half of these names are banned. */
function tooMany(globs: readonly CompiledGlob[], names: readonly FoldedText[]): BanRule | undefined {
  let free = names
  for (const { pattern, rule } of globs) {
    free = free.filter((name) => !pattern.matches(name))
    if (2 * free.length <= names.length) return rule
  }
  return undefined
}
