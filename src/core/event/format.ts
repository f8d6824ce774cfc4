import type { Errcode } from '../errors.ts'
import type { EventId, RoomId, UserId } from '../ids.ts'
import type { JsonObject } from '../json.ts'

/** A reference to an event in room versions 1 and 2: its id and its reference hash. */
export type HashedReference = [eventId: EventId, hash: { sha256: string }]
export type EventReferences = EventId[] | HashedReference[]

/** A persistent data unit: an event as servers exchange and sign it. Shapes hold once {@link checkFormat} has allowed it. */
export interface Pdu extends JsonObject {
  type: string
  sender: UserId
  /** Absent from the create event where its hash is the room id (room version 12). */
  room_id?: RoomId
  /** Present exactly on state events. */
  state_key?: string
  content: JsonObject
  origin_server_ts: number
  depth: number
  prev_events: EventReferences
  auth_events: EventReferences
  hashes: { sha256: string }
  signatures: { [server: string]: { [keyId: string]: string } }
  unsigned?: JsonObject
  redacts?: EventId
  /** Room versions 1 and 2 only; later the id is computed. */
  event_id?: EventId
}

/** The answer of a rule: never thrown. `errcode` is a hint for the caller that turns a refusal into an error. */
export type Verdict =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly reason: string; readonly errcode?: Errcode }

export const ALLOWED: Verdict = { allowed: true }

export function refuse(reason: string, errcode?: Errcode): Verdict {
  return errcode === undefined ? { allowed: false, reason } : { allowed: false, reason, errcode }
}

/** The ids in `prev_events` or `auth_events`, in either shape. */
export function referencedIds(references: EventReferences): EventId[] {
  return references.map((reference) => (typeof reference === 'string' ? reference : reference[0]))
}
