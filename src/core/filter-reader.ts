import { refuse, type Verdict } from './event/format.ts'
import type { Filter, RoomEventFilter } from './filter.ts'
import { isRoomId, isUserId } from './ids.ts'
import { isObject, type JsonObject, type JsonValue } from './json.ts'

type Refusal = Extract<Verdict, { allowed: false }>

/** A valid filter, or a refusal with a reason and `M_BAD_JSON` or `M_INVALID_PARAM`. */
export type FilterReading<T> = { readonly allowed: true; readonly filter: T } | Refusal

/** Each wildcard is tried on each event; exact types cost nothing. */
const MAX_WILDCARDS = 100

/** Gives a refusal for a bad value, else undefined. `name` is the value's path, for the reason. */
type Check = (value: JsonValue, name: string) => Refusal | undefined

function wrongType(name: string, expected: string): Refusal {
  return refuse(`${name} must be ${expected}.`, 'M_BAD_JSON') as Refusal
}

function wrongValue(name: string, expected: string): Refusal {
  return refuse(`${name} must be ${expected}.`, 'M_INVALID_PARAM') as Refusal
}

const flag: Check = (value, name) => (typeof value === 'boolean' ? undefined : wrongType(name, 'true or false'))

const count: Check = (value, name) => {
  if (typeof value !== 'number' || !Number.isInteger(value)) return wrongType(name, 'an integer')
  return value >= 0 ? undefined : wrongValue(name, 'zero or more')
}

const format: Check = (value, name) =>
  value === 'client' || value === 'federation' ? undefined : wrongType(name, '"client" or "federation"')

const texts: Check = (value, name) =>
  Array.isArray(value) && value.every((entry) => typeof entry === 'string')
    ? undefined
    : wrongType(name, 'a list of strings')

const types: Check = (value, name) => {
  const wildcards = (list: JsonValue) => (list as string[]).filter((type) => type.includes('*')).length
  return (
    texts(value, name) ??
    (wildcards(value) > MAX_WILDCARDS ? wrongValue(name, `a list with at most ${MAX_WILDCARDS} wildcards`) : undefined)
  )
}

function listOf(isOne: (value: unknown) => boolean, what: string): Check {
  return (value, name) =>
    texts(value, name) ?? ((value as string[]).every(isOne) ? undefined : wrongValue(name, `a list of ${what}`))
}

const userIds = listOf(isUserId, 'user ids')
const roomIds = listOf(isRoomId, 'room ids')

/** Unknown fields are allowed, because later releases may define them. A field that is `null` counts as absent. */
function object(fields: Readonly<Record<string, Check>>): Check {
  return (value, name) => {
    if (!isObject(value)) return wrongType(name, 'an object')
    for (const [field, check] of Object.entries(fields)) {
      const found = value[field]
      const refusal =
        found === undefined || found === null ? undefined : check(found, name === ROOT ? field : `${name}.${field}`)
      if (refusal) return refusal
    }
    return undefined
  }
}

const ROOT = 'The filter'

const EVENT_FIELDS = { limit: count, types, not_types: types, senders: userIds, not_senders: userIds }
const ROOM_FIELDS = { rooms: roomIds, not_rooms: roomIds }

const eventFilter = object(EVENT_FIELDS)

const roomEventFilter = object({
  ...EVENT_FIELDS,
  ...ROOM_FIELDS,
  contains_url: flag,
  lazy_load_members: flag,
  include_redundant_members: flag,
  unread_thread_notifications: flag,
  'org.matrix.msc3773.unread_thread_notifications': flag,
  related_by_rel_types: texts,
  related_by_senders: userIds,
})

const filter = object({
  event_fields: texts,
  event_format: format,
  presence: eventFilter,
  account_data: eventFilter,
  room: object({
    ...ROOM_FIELDS,
    include_leave: flag,
    ephemeral: roomEventFilter,
    state: roomEventFilter,
    timeline: roomEventFilter,
    account_data: roomEventFilter,
  }),
})

/** The same filter without the fields that are absent. */
function withoutNulls(value: JsonValue): JsonValue {
  if (!isObject(value)) return value
  const kept = Object.entries(value).filter(([, inner]) => inner !== null)
  return Object.fromEntries(kept.map(([field, inner]) => [field, withoutNulls(inner)])) as JsonObject
}

/** Checks the filter of a sync, from a request's body or its query. */
export function readFilter(value: JsonValue): FilterReading<Filter> {
  return filter(value, ROOT) ?? { allowed: true, filter: withoutNulls(value) as Filter }
}

/** Checks the filter parameter of an endpoint that reads one room's events. */
export function readRoomEventFilter(value: JsonValue): FilterReading<RoomEventFilter> {
  return roomEventFilter(value, ROOT) ?? { allowed: true, filter: withoutNulls(value) as RoomEventFilter }
}
