import { encodeBase64 } from '../../core/base64.ts'
import type { HashedReference, Pdu } from '../../core/event/format.ts'
import type { EventId } from '../../core/ids.ts'
import type { RoomVersion } from '../../core/room-version.ts'
import { referenceHash } from '../../core/signing/event-hash.ts'

/** How another event names this one in `prev_events` and `auth_events`. */
export function referenceTo(version: RoomVersion, event: { id: EventId; pdu: Pdu }): EventId | HashedReference {
  if (!version.referencesCarryHashes) return event.id
  return [event.id, { sha256: encodeBase64(referenceHash(version, event.pdu)) }]
}
