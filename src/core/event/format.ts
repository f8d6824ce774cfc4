import type { Errcode } from '../errors.ts'
import {
  type EventId,
  isEventId,
  isRoomId,
  isServerName,
  isUserId,
  type RoomId,
  serverOf,
  type UserId,
} from '../ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../json.ts'
import type { Integer } from '../large-integers.ts'
import type { RoomVersion } from '../room-version.ts'
import { encodeCanonical } from '../signing/canonical-json.ts'

/** A reference to an event in room versions 1 and 2: its id and its reference hash. */
export type HashedReference = [eventId: EventId, hash: { sha256: string }]
export type EventReference = EventId | HashedReference

/** A persistent data unit: an event as servers exchange and sign it. The types below hold once {@link checkFormat} has allowed it. */
export interface Pdu extends JsonObject {
  type: string
  sender: UserId
  /** Absent from the create event in room version 12, where the event's hash is the room id. */
  room_id?: RoomId
  /** Present exactly on state events. */
  state_key?: string
  content: JsonObject
  origin_server_ts: Integer
  depth: Integer
  prev_events: EventReference[]
  auth_events: EventReference[]
  hashes: { sha256: string }
  signatures: { [server: string]: { [keyId: string]: string } }
  unsigned?: JsonObject
  redacts?: EventId
  /** The server that made the event, in versions whose events have it. */
  origin?: string
  /** How long the event is sticky (MSC4354). Of other servers it may be anything. */
  msc4354_sticky?: { duration_ms?: JsonValue }
  /** Room versions 1 and 2 only; later the id is computed. */
  event_id?: EventId
}

/** A rule's verdict against an event. */
export interface Refusal {
  readonly allowed: false
  /** For people. */
  readonly reason: string
  /** For tools: the clause of the room version's authorisation rules that refuses, such as `5.3.3`. */
  readonly rule?: string
  /** A hint for the caller that turns a refusal into an error. */
  readonly errcode?: Errcode
}

/** The verdict of a rule. Rules never throw. */
export type Verdict = { readonly allowed: true } | Refusal

export const ALLOWED: Verdict = { allowed: true }

export function refuse(reason: string, errcode?: Errcode): Refusal {
  return errcode === undefined ? { allowed: false, reason } : { allowed: false, reason, errcode }
}

/** The id in an entry of `prev_events` or `auth_events`, in either shape. */
export function referencedId(reference: EventReference): EventId {
  return typeof reference === 'string' ? reference : reference[0]
}

/** The published limit on an event's canonical JSON with its signatures, for events of other servers. */
export const MAX_RECEIVED_EVENT_BYTES = 65_536
/** The limit for our own events: one byte less, which every release of the specification allows. */
export const MAX_EVENT_BYTES = 65_535
/** No identifier, type or state key may be longer than this many UTF-8 bytes. */
export const MAX_FIELD_BYTES = 255
export const MAX_PREV_EVENTS = 20
export const MAX_AUTH_EVENTS = 10

/** A room id that is a hash: 32 bytes in URL-safe base64. */
const HASH_ROOM_ID = /^![A-Za-z0-9_-]{43}$/

type Check = (version: RoomVersion, pdu: JsonObject) => string | undefined

/**
 * Whether an object has the shape of a PDU of this version: required keys, types, lengths, counts, ranges.
 * This needs no other events, keys or signatures. The reader reports offences against canonical JSON.
 *
 * Identifiers, types and state keys with U+0000 are refused in every version, since Postgres cannot hold them as text.
 *
 * @param bytes the length of the event's canonical JSON, where the caller knows it
 */
export function checkFormat(
  version: RoomVersion,
  pdu: JsonObject,
  bytes: number = Buffer.byteLength(encodeCanonical(pdu)),
): Verdict {
  return isTooLarge(bytes) ?? checkShape(version, pdu)
}

/** The refusal of an event whose canonical JSON has this many bytes, if it has too many. */
export function isTooLarge(bytes: number): Refusal | undefined {
  if (bytes <= MAX_RECEIVED_EVENT_BYTES) return undefined
  return refuse(`the event is larger than ${MAX_RECEIVED_EVENT_BYTES} bytes`, 'M_TOO_LARGE')
}

/** {@link checkFormat} without the limit on the event's size. */
export function checkShape(version: RoomVersion, pdu: JsonObject): Verdict {
  for (const field of LIMITED_FIELDS) {
    const value = pdu[field]
    if (typeof value === 'string' && exceedsField(value))
      return refuse(`${field} is longer than ${MAX_FIELD_BYTES} bytes`, 'M_TOO_LARGE')
  }
  for (const check of CHECKS) {
    const reason = check(version, pdu)
    if (reason !== undefined) return refuse(reason, 'M_BAD_JSON')
  }
  return ALLOWED
}

/** `event_id` is limited below, only in versions that use it. */
const LIMITED_FIELDS = ['type', 'state_key', 'sender', 'room_id'] as const

function exceedsField(value: string): boolean {
  // No UTF-16 unit takes more than three bytes.
  return value.length * 3 > MAX_FIELD_BYTES && Buffer.byteLength(value) > MAX_FIELD_BYTES
}

/** In the order of cost; each gives the mistake, if any. */
const CHECKS: readonly Check[] = [
  (_, { type }) => (isText(type) ? undefined : 'type must be a string'),
  (_, { sender }) => (isUserId(sender) ? undefined : 'sender must be a user id'),
  (_, { state_key }) => (state_key === undefined || isText(state_key) ? undefined : 'state_key must be a string'),
  (_, { content }) => (isObject(content) ? undefined : 'content must be an object'),
  (_, { unsigned }) => (unsigned === undefined || isObject(unsigned) ? undefined : 'unsigned must be an object'),
  (_, { origin_server_ts }) => (isInteger(origin_server_ts) ? undefined : 'origin_server_ts must be an integer'),
  checkRoomId,
  checkEventId,
  checkRedacts,
  checkDepth,
  (version, { prev_events }) => checkReferences(version, 'prev_events', prev_events, MAX_PREV_EVENTS),
  (version, { auth_events }) => checkReferences(version, 'auth_events', auth_events, MAX_AUTH_EVENTS),
  (_, { hashes }) => (isHash(hashes) ? undefined : 'hashes must hold a sha256'),
  (_, { signatures }) => (isSignatures(signatures) ? undefined : 'signatures must map servers to keys to signatures'),
]

function isText(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && !value.includes('\0')
}

function checkRoomId(version: RoomVersion, { type, room_id }: JsonObject): string | undefined {
  if (!version.roomIdIsCreateHash) return isRoomId(room_id) ? undefined : 'room_id must be a room id'
  // The authorisation rules check whether a create event may have a room id.
  if (type === 'm.room.create') return room_id === undefined || isText(room_id) ? undefined : 'room_id must be a string'
  return typeof room_id === 'string' && HASH_ROOM_ID.test(room_id)
    ? undefined
    : 'room_id must be the hash of a create event'
}

function checkEventId(version: RoomVersion, { event_id }: JsonObject): string | undefined {
  if (version.eventIdFormat !== 'opaque') return undefined
  const server = isEventId(event_id) ? serverOf(event_id) : undefined
  return server !== undefined && isServerName(server) ? undefined : 'event_id must be an event id'
}

function checkRedacts(version: RoomVersion, { type, redacts }: JsonObject): string | undefined {
  if (version.redactsIsInContent || type !== 'm.room.redaction' || redacts === undefined) return undefined
  return isText(redacts) ? undefined : 'redacts must be a string'
}

/** An integer of any size. Versions that forbid large ones have refused them before. */
function isInteger(value: JsonValue | undefined): value is Integer {
  return Number.isSafeInteger(value) || typeof value === 'bigint'
}

function checkDepth({ maxDepth }: RoomVersion, { depth }: JsonObject): string | undefined {
  const fits = isInteger(depth) && depth >= 0 && depth <= maxDepth
  return fits ? undefined : 'depth must be an integer in range'
}

function checkReferences(
  version: RoomVersion,
  field: string,
  references: JsonValue | undefined,
  limit: number,
): string | undefined {
  if (!Array.isArray(references)) return `${field} must be a list`
  if (references.length > limit) return `${field} has more than ${limit} entries`
  const isReference = version.referencesCarryHashes ? isHashedReference : isEventId
  return references.every((reference) => isReference(reference))
    ? undefined
    : `${field} holds what is no reference to an event`
}

function isHashedReference(value: JsonValue): boolean {
  return Array.isArray(value) && value.length === 2 && isEventId(value[0]) && isObject(value[1])
}

function isHash(value: JsonValue | undefined): boolean {
  return isObject(value) && typeof value.sha256 === 'string'
}

function isSignatures(value: JsonValue | undefined): boolean {
  return (
    isObject(value) &&
    Object.values(value).every(
      (own) => isObject(own) && Object.values(own).every((signature) => typeof signature === 'string'),
    )
  )
}
