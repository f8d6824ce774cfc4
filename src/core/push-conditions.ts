import { compileGlob, compileWord, compileWordGlob } from './glob.ts'
import { localpartOf } from './ids.ts'
import type { JsonObject, JsonPrimitive, JsonValue } from './json.ts'
import { parsePropertyPath, propertyAt } from './property-path.ts'

/** The part of an event that push rules use. */
export interface PushEvent extends JsonObject {
  type: string
  sender: string
  state_key?: string
  content: JsonObject
}

/** The facts about the user and the room that push rules use. */
export interface PushContext {
  readonly userId: string
  /** The user's display name in the room. */
  readonly displayName: string | undefined
  /** Joined members. */
  readonly memberCount: number
  readonly senderPower: number
  /** The level that `@room` takes (`notifications.room`). */
  readonly roomNotificationLevel: number
}

/** Stand for a pattern or value: the id, or the localpart, of the rules' user. */
export const OWN_USER_ID = Symbol('own user id')
export const OWN_LOCALPART = Symbol('own localpart')

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

export type PushTest = (event: PushEvent, context: PushContext) => boolean

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

export function compileCondition(condition: PushCondition): PushTest {
  switch (condition.kind) {
    case 'event_match':
      return eventMatch(condition.key, condition.pattern)
    case 'event_property_is':
      return propertyIs(condition.key, condition.value)
    case 'event_property_contains':
      return propertyContains(condition.key, condition.value)
    case 'contains_display_name':
      return ({ content }, { displayName }) => hasWord(content.body, displayName)
    case 'room_member_count':
      return memberCount(condition.is)
    case 'sender_notification_permission':
      return (_event, context) => condition.key === 'room' && context.senderPower >= context.roomNotificationLevel
    default:
      // An unknown condition never holds.
      return () => false
  }
}

/** The condition of a content rule: the body contains the pattern, at word boundaries. */
export function compileContentPattern(pattern: string | typeof OWN_LOCALPART): PushTest {
  if (pattern === OWN_LOCALPART) return ({ content }, { userId }) => hasWord(content.body, localpartOf(userId))
  return eventMatch('content.body', pattern)
}

function eventMatch(key: string, pattern: string | typeof OWN_USER_ID): PushTest {
  const path = parsePropertyPath(key)
  if (pattern === OWN_USER_ID) return (event, { userId }) => propertyAt(event, path) === userId
  const matches = key === 'content.body' ? compileWordGlob(pattern) : compileGlob(pattern)
  return (event) => {
    const value = propertyAt(event, path)
    return typeof value === 'string' && matches(value)
  }
}

function propertyIs(key: string, wanted: JsonPrimitive): PushTest {
  const path = parsePropertyPath(key)
  return (event) => propertyAt(event, path) === wanted
}

function propertyContains(key: string, wanted: JsonPrimitive | typeof OWN_USER_ID): PushTest {
  const path = parsePropertyPath(key)
  return (event, { userId }) => {
    const values = propertyAt(event, path)
    return Array.isArray(values) && values.includes(wanted === OWN_USER_ID ? userId : wanted)
  }
}

function hasWord(text: JsonValue | undefined, word: string | undefined): boolean {
  return typeof text === 'string' && word !== undefined && word !== '' && compileWord(word)(text)
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
