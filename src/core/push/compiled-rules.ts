import { compileText, FoldedText } from '../glob.ts'
import { isObject, type JsonObject } from '../json.ts'
import { sha256Base64 } from '../signing/event-hash.ts'
import { compileCondition, type PushTest, readCondition } from './conditions.ts'
import {
  COMPILED_DEFAULTS,
  type CompiledRule,
  compileTests,
  ENABLED_DEFAULTS,
  evaluateRules,
  outcomeOf,
  PUSH_RULE_KINDS,
  type PushOutcome,
  type PushRuleKind,
  SILENCE,
} from './default-rules.ts'
import type { OwnRule, OwnRules } from './own-rules.ts'
import { type PushContext, PushedEvent } from './pushed-event.ts'
import { type DefaultsTried, evaluateShared, type SharedOutcome } from './shared-outcome.ts'

/**
 * How a user's rules in one room differ from the default ones, as far as unread counts go. `default`: not at all. `silent`: no event
 * notifies. `own`: the user's events are counted one by one.
 */
export type RoomStanding = 'default' | 'silent' | 'own'

/** A user's push rules in one room. */
export interface RoomRules {
  readonly standing: RoomStanding
  /** Whether a plain message notifies. Then the room's own count is the basis of the user's; otherwise nothing is. */
  readonly countsMessages: boolean
  /** Users whom the user ignores: nothing of theirs notifies, in spite of the rules. */
  readonly ignored: ReadonlySet<string> | undefined
  /** Rules with the same key do the same in this room, for any user, except that they may ignore other senders. */
  readonly key: string
  /** About how many characters the rules have. */
  readonly length: number
  evaluate(event: PushedEvent, context: PushContext): PushOutcome
  /** What the rules make of an event for all who have them. @param context of nobody, as for `evaluateShared` */
  evaluateForAll(event: PushedEvent, context: PushContext, tried: DefaultsTried): SharedOutcome
}

/** A user's push rules, compiled when they are read or written. Users who have changed none share {@link DEFAULT_PUSH_RULES}. */
export interface CompiledRules {
  /** What the rules make of an event. Own events never notify. */
  evaluate(event: PushedEvent, context: PushContext): PushOutcome
  /** The same rules without those whom the user ignores: users who have the same rules share them. */
  readonly rules: CompiledRules
  readonly ignored: ReadonlySet<string> | undefined
  /** What the rules make of an event for all who have them. @param context of nobody, as for `evaluateShared` */
  evaluateForAll(event: PushedEvent, context: PushContext, tried: DefaultsTried): SharedOutcome
  /** The rules as they are in one room. */
  inRoom(roomId: string): RoomRules
}

/** The rules of users who have changed none. */
export const DEFAULT_PUSH_RULES: CompiledRules = compiled(ENABLED_DEFAULTS)

/** Compiles a user's rules. Takes anything that was once stored: what it does not understand never applies. */
export function compileRuleset(rules: OwnRules): CompiledRules {
  return compiled(PUSH_RULE_KINDS.flatMap((kind) => compileKind(kind, rules)))
}

/** The rules of a user who ignores some senders: nothing of theirs notifies (client-server API, "Ignoring users"). */
export function withoutSenders(rules: CompiledRules, ignored: ReadonlySet<string>): CompiledRules {
  return {
    rules,
    ignored,
    evaluateForAll: rules.evaluateForAll,
    evaluate: (event, context) => (ignored.has(event.pdu.sender) ? SILENCE : rules.evaluate(event, context)),
    inRoom(roomId) {
      const inside = rules.inRoom(roomId)
      const { standing, countsMessages, length, evaluate, evaluateForAll } = inside
      return {
        standing,
        countsMessages,
        ignored,
        get key() {
          return inside.key
        },
        length,
        evaluate,
        evaluateForAll,
      }
    },
  }
}

function compileKind(kind: PushRuleKind, { own, changes }: OwnRules): CompiledRule[] {
  const defaults = COMPILED_DEFAULTS[kind].flatMap((rule): CompiledRule[] => {
    const change = Object.hasOwn(changes, rule.id) ? changes[rule.id] : undefined
    const isEnabled = change?.enabled ?? !rule.isDisabled
    if (!isEnabled) return []
    if (!change?.actions) return [rule]
    return [{ ...rule, key: `${rule.id} ${JSON.stringify(change.actions)}`, outcome: outcomeOf(change.actions) }]
  })
  const owned = (own[kind] ?? []).filter(isWhole).filter(({ isOff }) => !isOff)
  const ready = owned.map((rule) => compileOwn(kind, rule))
  const first = defaults.filter(({ id }) => id === '.m.rule.master')
  return [...first, ...ready, ...defaults.slice(first.length)]
}

/** One rule that cannot be read must not break the others, nor the sending of events. */
const isWhole = (rule: OwnRule | null | undefined): rule is OwnRule => Array.isArray(rule?.actions)

const NEVER: PushTest = () => false

function compileOwn(kind: PushRuleKind, { id, actions, conditions = [], pattern }: OwnRule): CompiledRule {
  const outcome = outcomeOf(actions)
  switch (kind) {
    case 'content': {
      const key = keyOf(kind, pattern ?? null, actions)
      return { id, key, tests: [pattern === undefined ? NEVER : compileBodyPattern(pattern)], personal: [], outcome }
    }
    case 'room':
      return {
        ...{ id, key: keyOf(kind, id, actions), outcome },
        tests: [(event) => event.at(['room_id']) === id],
        personal: [],
        testsIn: (roomId) => (roomId === id ? [] : undefined),
      }
    case 'sender':
      return { id, key: keyOf(kind, id, actions), tests: [({ pdu }) => pdu.sender === id], personal: [], outcome }
    default:
      return { id, key: keyOf('conditions', conditions, actions), ...compileConditions(conditions), outcome }
  }
}

/** All that matters of a rule. No key of a default rule begins like this. */
const keyOf = (...parts: readonly unknown[]): string => JSON.stringify(parts)

const compileBodyPattern = (pattern: string): PushTest =>
  compileCondition({ kind: 'event_match', key: 'content.body', pattern })

/** In one room, conditions about the room's id are tried once, not again for each event. */
function compileConditions(conditions: readonly JsonObject[]): Pick<CompiledRule, 'tests' | 'personal' | 'testsIn'> {
  const read = conditions.map((condition) => (isObject(condition) ? readCondition(condition) : undefined))
  const whole = read.filter((condition) => condition !== undefined)
  const { tests, personal } = compileTests(whole)
  if (whole.length < read.length) return { tests: [NEVER], personal: [] }
  const about = whole.flatMap((one) =>
    one.kind === 'event_match' && one.key === 'room_id' && typeof one.pattern === 'string' ? [one] : [],
  )
  if (about.length === 0) return { tests, personal }
  const rooms = about.map(({ pattern }) => compileText(pattern as string, 'whole'))
  const { tests: left } = compileTests(whole.filter((one) => !(about as readonly unknown[]).includes(one)))
  return {
    tests,
    personal,
    testsIn: (roomId) => {
      const text = new FoldedText(roomId)
      return rooms.every((room) => room.matches(text)) ? left : undefined
    },
  }
}

/** A message that says nothing in particular, in a room of several, to decide what a room's messages do. */
const PLAIN_MESSAGE = new PushedEvent({
  type: 'm.room.message',
  sender: '',
  content: { msgtype: 'm.text', body: '' },
})
const PLAIN_CONTEXT: PushContext = {
  userId: '@',
  displayName: undefined,
  memberCount: 3,
  senderPower: 0,
  powerToNotify: () => Number.POSITIVE_INFINITY,
}

function compiled(rules: readonly CompiledRule[]): CompiledRules {
  const isAlikeEverywhere = rules.every(({ testsIn }) => testsIn === undefined)
  let everywhere: RoomRules | undefined
  function inRoom(roomId: string): RoomRules {
    if (!isAlikeEverywhere) return rulesInRoom(rules, roomId)
    everywhere ??= rulesInRoom(rules, roomId)
    return everywhere
  }
  const made: CompiledRules = {
    get rules() {
      return made
    },
    ignored: undefined,
    evaluate: (event, context) => evaluateRules(rules, event, context),
    evaluateForAll: (event, context, tried) => evaluateShared(rules, event, context, tried),
    inRoom,
  }
  return made
}

function rulesInRoom(all: readonly CompiledRule[], roomId: string): RoomRules {
  const rules: CompiledRule[] = []
  for (const rule of all) {
    const tests = rule.testsIn ? rule.testsIn(roomId) : rule.tests
    if (tests === undefined) continue
    rules.push(tests === rule.tests ? rule : { ...rule, tests })
    // What comes after a rule that always applies is never tried.
    if (tests.length === 0 && rule.personal.length === 0) break
  }
  let hash: string | undefined
  return {
    standing: standingOf(rules),
    countsMessages: evaluateRules(rules, PLAIN_MESSAGE, PLAIN_CONTEXT).notify,
    ignored: undefined,
    get key() {
      hash ??= sha256Base64(rules.map(({ key }) => key).join('\n'))
      return hash
    },
    length: rules.reduce((sum, { key }) => sum + key.length + 1, 0),
    evaluate: (event, context) => evaluateRules(rules, event, context),
    evaluateForAll: (event, context, tried) => evaluateShared(rules, event, context, tried),
  }
}

function standingOf(rules: readonly CompiledRule[]): RoomStanding {
  if (rules.every(({ outcome }) => !outcome.notify)) return 'silent'
  const isAsDefault =
    rules.length === ENABLED_DEFAULTS.length &&
    rules.every((rule, place) => countsAlike(rule, ENABLED_DEFAULTS[place]!))
  return isAsDefault ? 'default' : 'own'
}

const countsAlike = (one: CompiledRule, other: CompiledRule): boolean =>
  one.id === other.id &&
  one.outcome.notify === other.outcome.notify &&
  one.outcome.highlight === other.outcome.highlight
