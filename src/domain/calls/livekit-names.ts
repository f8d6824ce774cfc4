import { hash } from 'node:crypto'
import { encodeCanonical } from '../../core/signing/canonical-json.ts'

/** The slot of a call in a room, for clients that name none. */
export const ROOM_CALL_SLOT = 'm.call#ROOM'

const pseudonym = (parts: readonly string[]): string =>
  hash('sha256', encodeCanonical([...parts]), 'base64').replace(/=+$/, '')

/** The name of a call in LiveKit (MSC4195, "LiveKit room alias"). */
export const livekitRoom = (roomId: string, slotId: string): string => pseudonym([roomId, slotId])

/** The name of a participant in LiveKit, which does not show the user (MSC4195, "Pseudonymous LiveKit Participant Identity"). */
export const livekitIdentity = (userId: string, deviceId: string, memberId: string): string =>
  pseudonym([userId, deviceId, memberId])
