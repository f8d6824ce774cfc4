import { compileText, type TextPattern } from '../glob.ts'
import { isObject, type JsonObject, type JsonPrimitive } from '../json.ts'
import { parsePropertyPath } from '../property-path.ts'
import type { PushContext, PushedEvent } from './pushed-event.ts'

/** Stands for a pattern or value: the id of the rules' user. */
export const OWN_USER_ID = Symbol('own user id')

/** Whether the user follows the thread that the event is in (MSC4306). Its later name is understood too. */
export const THREAD_SUBSCRIPTION = 'io.element.msc4306.thread_subscription'

/** A condition of a push rule (client-server API, "Conditions"). */
export type PushCondition =
  | { readonly kind: 'event_match'; readonly key: string; readonly pattern: string | typeof OWN_USER_ID }
  | { readonly kind: 'event_property_is'; readonly key: string; readonly value: JsonPrimitive }
  | {
      readonly kind: 'event_property_contains'
      readonly key: string
      readonly value: JsonPrimitive | typeof OWN_USER_ID
    }
  | { readonly kind: 'contains_display_name' }
  | { readonly kind: 'room_member_count'; readonly is: string }
  | { readonly kind: 'sender_notification_permission'; readonly key: string }
  | { readonly kind: typeof THREAD_SUBSCRIPTION; readonly subscribed: boolean }

export type PushTest = (event: PushedEvent, context: PushContext) => boolean

/**
 * The ids of all users for whom a condition about the user can hold, whatever else is in the list; undefined if it can be anybody.
 *
 * @param context of no user in particular
 */
export type NamedUsers = (event: PushedEvent, context: PushContext) => readonly unknown[] | undefined

/** A condition that may hold for one user and not for another in the same room. */
export interface PersonalTest {
  readonly holds: PushTest
  readonly names: NamedUsers
}

/** Whether a condition depends on the event alone. */
export function isAboutEventAlone(condition: PushCondition): boolean {
  switch (condition.kind) {
    case 'event_match':
      return condition.pattern !== OWN_USER_ID
    case 'event_property_is':
      return true
    case 'event_property_contains':
      return condition.value !== OWN_USER_ID
    default:
      return false
  }
}

const NOBODY: readonly unknown[] = []

/** Who a condition names, if it is one about the user. */
export function compileNames(condition: PushCondition): NamedUsers | undefined {
  switch (condition.kind) {
    case 'event_match': {
      if (condition.pattern !== OWN_USER_ID) return undefined
      const path = parsePropertyPath(condition.key)
      return (event) => [event.at(path)]
    }
    case 'event_property_contains': {
      if (condition.value !== OWN_USER_ID) return undefined
      const path = parsePropertyPath(condition.key)
      return (event) => {
        const values = event.at(path)
        return Array.isArray(values) ? values : NOBODY
      }
    }
    case 'contains_display_name':
      return (event) => (event.text(BODY_KEY, BODY_PATH) === undefined ? NOBODY : undefined)
    case THREAD_SUBSCRIPTION:
      return (_event, { follows }) => (follows === undefined ? NOBODY : undefined)
    default:
      return undefined
  }
}

/** A condition as a client wrote it, if it is one that can hold: of a known kind, and whole. */
export function readCondition(condition: JsonObject): PushCondition | undefined {
  const { kind, key, pattern, value, is, subscribed } = condition
  const isScalar = !isObject(value) && !Array.isArray(value) && value !== undefined
  if (kind === 'contains_display_name') return { kind }
  if (kind === 'room_member_count') return typeof is === 'string' ? { kind, is } : undefined
  if (kind === THREAD_SUBSCRIPTION || kind === 'thread_subscription') {
    return typeof subscribed === 'boolean' ? { kind: THREAD_SUBSCRIPTION, subscribed } : undefined
  }
  if (typeof key !== 'string') return undefined
  if (kind === 'sender_notification_permission') return { kind, key }
  if (kind === 'event_match') return typeof pattern === 'string' ? { kind, key, pattern } : undefined
  if (!isScalar) return undefined
  return kind === 'event_property_is' || kind === 'event_property_contains' ? { kind, key, value } : undefined
}

export function compileCondition(condition: PushCondition): PushTest {
  switch (condition.kind) {
    case 'event_match':
      return eventMatch(condition.key, condition.pattern)
    case 'event_property_is':
      return propertyIs(condition.key, condition.value)
    case 'event_property_contains':
      return propertyContains(condition.key, condition.value)
    case 'contains_display_name':
      return containsDisplayName
    case 'room_member_count':
      return memberCount(condition.is)
    case 'sender_notification_permission':
      return (_event, { senderPower, powerToNotify }) => senderPower >= powerToNotify(condition.key)
    case THREAD_SUBSCRIPTION:
      return (_event, { follows }) => follows === condition.subscribed
    default:
      // An unknown condition never holds.
      return () => false
  }
}

const BODY_KEY = 'content.body'
const BODY_PATH = parsePropertyPath(BODY_KEY)

function eventMatch(key: string, pattern: string | typeof OWN_USER_ID): PushTest {
  const path = parsePropertyPath(key)
  if (pattern === OWN_USER_ID) return (event, { userId }) => event.at(path) === userId
  const compiled = compileText(pattern, key === BODY_KEY ? 'words' : 'whole')
  return (event) => finds(event, compiled, event.text(key, path))
}

function finds(event: PushedEvent, pattern: TextPattern, text: ReturnType<PushedEvent['text']>): boolean {
  return text !== undefined && event.spend(pattern.steps(text)) && pattern.matches(text)
}

function propertyIs(key: string, wanted: JsonPrimitive): PushTest {
  const path = parsePropertyPath(key)
  return (event) => event.at(path) === wanted
}

function propertyContains(key: string, wanted: JsonPrimitive | typeof OWN_USER_ID): PushTest {
  const path = parsePropertyPath(key)
  return (event, { userId }) => {
    const values = event.at(path)
    return Array.isArray(values) && values.includes(wanted === OWN_USER_ID ? userId : wanted)
  }
}

/** Deprecated, but clients still make rules of it. */
function containsDisplayName(event: PushedEvent, { displayName = '' }: PushContext): boolean {
  if (displayName === '') return false
  const text = event.text(BODY_KEY, BODY_PATH)
  // Most texts name nobody: they need no pattern.
  if (!text?.folded.includes(displayName.toLowerCase())) return false
  return finds(event, compileText(displayName, 'word'), text)
}

const COMPARISONS: ReadonlyMap<string, (count: number, bound: number) => boolean> = new Map([
  ['', (count, bound) => count === bound],
  ['==', (count, bound) => count === bound],
  ['<', (count, bound) => count < bound],
  ['>', (count, bound) => count > bound],
  ['<=', (count, bound) => count <= bound],
  ['>=', (count, bound) => count >= bound],
])

function memberCount(is: string): PushTest {
  const [, operator = '', digits] = /^([=<>]{0,2})([0-9]+)$/.exec(is) ?? []
  const compare = COMPARISONS.get(operator)
  if (digits === undefined || compare === undefined) return () => false
  const bound = Number(digits)
  return (_event, context) => compare(context.memberCount, bound)
}
