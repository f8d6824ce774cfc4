import { hash } from 'node:crypto'
import { encodeBase64, encodeBase64Url } from '../base64.ts'
import type { EventReference, Pdu } from '../event/format.ts'
import { redact } from '../event/redact.ts'
import type { EventId, RoomId } from '../ids.ts'
import type { JsonObject } from '../json.ts'
import type { RoomVersion } from '../room-version.ts'
import { encodeCanonical } from './canonical-json.ts'
import { addSignature, signedText } from './json-signature.ts'
import type { SigningKey } from './key.ts'

/** SHA-256 in unpadded base64, of text as UTF-8. */
export function sha256Base64(data: string | Uint8Array): string {
  return hash('sha256', data, 'base64').slice(0, 43)
}

/** The content hash, over all but `unsigned`, `signatures` and `hashes` (server-server API, "Calculating the content hash for an event"). */
export function contentHash(pdu: JsonObject): string {
  const { unsigned, signatures, hashes, ...hashed } = pdu
  return sha256Base64(encodeCanonical(hashed))
}

/** The text that an event's signatures and its reference hash cover: the redacted event without `signatures` and `unsigned`. */
export function signedEventText(version: RoomVersion, pdu: Pdu): string {
  return signedText(redact(version, pdu))
}

/** SHA-256 of the redacted event (server-server API, "Calculating the reference hash for an event"). */
export function referenceHash(version: RoomVersion, pdu: Pdu): Buffer {
  return hash('sha256', signedEventText(version, pdu), 'buffer')
}

/** The event's id: in room versions 1 and 2 its `event_id`, in all others computed. */
export function eventIdOf(version: RoomVersion, pdu: Pdu): EventId {
  if (version.eventIdFormat === 'opaque') return pdu.event_id!
  return idOfText(version, signedEventText(version, pdu))
}

/** The id of the event with this signed text, in versions that compute ids. */
export function idOfText(version: RoomVersion, signed: string): EventId {
  return `$${version.eventIdFormat === 'base64' ? sha256Base64(signed) : hash('sha256', signed, 'base64url')}` as EventId
}

/** The reference that later events of the room use for this one. */
export function referenceTo(version: RoomVersion, pdu: Pdu): EventReference {
  return referenceOf(version, pdu.event_id, referenceHash(version, pdu))
}

/** A reference from its parts: the event's `event_id`, in versions that have it, and its reference hash. */
export function referenceOf(version: RoomVersion, ownId: EventId | undefined, reference: Uint8Array): EventReference {
  const eventId = version.eventIdFormat === 'opaque' ? ownId! : hashedEventId(version, reference)
  return version.referencesCarryHashes ? [eventId, { sha256: encodeBase64(reference) }] : eventId
}

/** The id that a reference hash makes, in the version's alphabet. */
export function hashedEventId(version: RoomVersion, reference: Uint8Array): EventId {
  return `$${version.eventIdFormat === 'base64' ? encodeBase64(reference) : encodeBase64Url(reference)}` as EventId
}

/** The room id from the create event's id, in room version 12. */
export function roomIdOfCreate(createEventId: EventId): RoomId {
  return `!${createEventId.slice(1)}` as RoomId
}

/** The create event's id from such a room id. */
export function createEventIdOf(roomId: RoomId): EventId {
  return `$${roomId.slice(1)}` as EventId
}

/** Adds a server's signature to an event: for a second signature on what another server built. Local events come from `buildEvent`. */
export function signEvent(version: RoomVersion, pdu: Pdu, server: string, key: SigningKey): Pdu {
  const signature = key.sign(signedEventText(version, pdu))
  return { ...pdu, signatures: addSignature(pdu, server, key.keyId, signature) }
}
