import { compileText, FoldedText, type TextPattern } from '../glob.ts'
import { isObject, type JsonObject } from '../json.ts'
import { compileCondition, type PushTest, readCondition } from './conditions.ts'
import {
  COMPILED_DEFAULTS,
  type CompiledRule,
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
  evaluate(event: PushedEvent, context: PushContext): PushOutcome
}

/** A user's push rules, compiled when they are read or written. Users who have changed none share {@link DEFAULT_PUSH_RULES}. */
export interface CompiledRules {
  /** What the rules make of an event. Own events never notify. */
  evaluate(event: PushedEvent, context: PushContext): PushOutcome
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
    evaluate: (event, context) => (ignored.has(event.pdu.sender) ? SILENCE : rules.evaluate(event, context)),
    inRoom(roomId) {
      const { standing, countsMessages, evaluate } = rules.inRoom(roomId)
      return { standing, countsMessages, ignored, evaluate }
    },
  }
}

function compileKind(kind: PushRuleKind, { own, changes }: OwnRules): CompiledRule[] {
  const defaults = COMPILED_DEFAULTS[kind].flatMap((rule): CompiledRule[] => {
    const change = Object.hasOwn(changes, rule.id) ? changes[rule.id] : undefined
    const isEnabled = change?.enabled ?? !rule.isDisabled
    if (!isEnabled) return []
    return [change?.actions ? { ...rule, outcome: outcomeOf(change.actions) } : rule]
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
    case 'content':
      return { id, tests: [pattern === undefined ? NEVER : compileBodyPattern(pattern)], outcome }
    case 'room':
      return {
        id,
        tests: [(event) => event.at(['room_id']) === id],
        testsIn: (roomId) => (roomId === id ? [] : undefined),
        outcome,
      }
    case 'sender':
      return { id, tests: [({ pdu }) => pdu.sender === id], outcome }
    default:
      return { id, ...compileConditions(conditions), outcome }
  }
}

const compileBodyPattern = (pattern: string): PushTest =>
  compileCondition({ kind: 'event_match', key: 'content.body', pattern })

/** In one room, conditions about the room's id are tried once, not again for each event. */
function compileConditions(conditions: readonly JsonObject[]): Pick<CompiledRule, 'tests' | 'testsIn'> {
  const rooms: TextPattern[] = []
  const roomTests: PushTest[] = []
  const tests: PushTest[] = []
  for (const condition of conditions) {
    const read = isObject(condition) ? readCondition(condition) : undefined
    const test = read ? compileCondition(read) : NEVER
    if (read?.kind === 'event_match' && read.key === 'room_id' && typeof read.pattern === 'string') {
      rooms.push(compileText(read.pattern, 'whole'))
      roomTests.push(test)
    } else tests.push(test)
  }
  if (rooms.length === 0) return { tests }
  return {
    tests: [...roomTests, ...tests],
    testsIn: (roomId) => {
      const text = new FoldedText(roomId)
      return rooms.every((room) => room.matches(text)) ? tests : undefined
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
  return { evaluate: (event, context) => evaluateRules(rules, event, context), inRoom }
}

function rulesInRoom(all: readonly CompiledRule[], roomId: string): RoomRules {
  const rules: CompiledRule[] = []
  for (const rule of all) {
    const tests = rule.testsIn ? rule.testsIn(roomId) : rule.tests
    if (tests === undefined) continue
    rules.push(tests === rule.tests ? rule : { ...rule, tests })
    // What comes after a rule that always applies is never tried.
    if (tests.length === 0) break
  }
  return {
    standing: standingOf(rules),
    countsMessages: evaluateRules(rules, PLAIN_MESSAGE, PLAIN_CONTEXT).notify,
    ignored: undefined,
    evaluate: (event, context) => evaluateRules(rules, event, context),
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
