import { type Pdu, referencedId } from '../../core/event/format.ts'
import { redact } from '../../core/event/redact.ts'
import { isSignedBy, requiredSigners, signatureKeyIds, type VerifyKey } from '../../core/event/signers.ts'
import type { EventId, ServerName } from '../../core/ids.ts'
import type { RoomVersion } from '../../core/room-version.ts'
import { encodeCanonical } from '../../core/signing/canonical-json.ts'
import { contentHash, eventIdOf, referenceTo } from '../../core/signing/event-hash.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { AuditTally } from './tally.ts'

/** The stored keys, of any server. A missing key is no finding. */
export type KnownKeys = (server: ServerName, keyIds: readonly string[]) => readonly VerifyKey[]

/** Whether an event's bytes are canonical, match their hash, and make its id. Returns what is wrong. */
export function checkBytes(version: RoomVersion, event: RoomEvent, tally: AuditTally): string[] {
  const { pdu } = event
  const wrong: string[] = []
  if (encodeCanonical(pdu) !== event.json) wrong.push('its stored JSON is not canonical')
  if (contentHash(pdu) === pdu.hashes.sha256.replace(/=+$/, '')) tally.hashes++
  else if (encodeCanonical(redact(version, pdu)) === event.json) tally.redactedCopies++
  else wrong.push('its content hash is not that of its content')
  const id = eventIdOf(version, pdu)
  if (id !== event.id) wrong.push(`its reference hash makes it ${id}`)
  return wrong
}

/** Checks the required signatures whose keys are stored. */
export function checkSignatures(version: RoomVersion, pdu: Pdu, keys: KnownKeys, tally: AuditTally): string[] {
  const wrong: string[] = []
  for (const server of requiredSigners(version, pdu)) {
    const keyIds = signatureKeyIds(pdu, server)
    const known = keys(server, keyIds)
    if (keyIds.length === 0) wrong.push(`it lacks a signature of ${server}`)
    else if (known.length === 0) tally.uncheckedSignatures++
    else if (isSignedBy(version, pdu, server, known)) tally.signatures++
    else wrong.push(`the signature of ${server} is wrong`)
  }
  return wrong
}

/** In room versions whose references carry hashes: checks those of stored events. */
export function checkReferences(
  version: RoomVersion,
  { pdu }: RoomEvent,
  known: ReadonlyMap<EventId, RoomEvent>,
): string[] {
  if (!version.referencesCarryHashes) return []
  return [...pdu.prev_events, ...pdu.auth_events].flatMap((reference) => {
    const event = known.get(referencedId(reference))
    const isRight = !event || JSON.stringify(referenceTo(version, event.pdu)) === JSON.stringify(reference)
    return isRight ? [] : [`it refers to ${event.id} by a wrong hash`]
  })
}
