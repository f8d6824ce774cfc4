import { decodeBase64 } from '../base64.ts'
import { type EventId, isEventId } from '../ids.ts'
import { isObject, type JsonObject, type JsonOffence, JsonTooDeepError, type JsonValue } from '../json.ts'
import type { RoomVersion } from '../room-version.ts'
import { encodeCanonical, offenceIn } from '../signing/canonical-json.ts'
import { eventIdOf, idOfText, sha256Base64 } from '../signing/event-hash.ts'
import { type EventTexts, eventTexts } from '../signing/event-texts.ts'
import { checkShape, isTooLarge, type Pdu, type Refusal, refuse } from './format.ts'
import { redact } from './redact.ts'

/** A received event, ready for the checks of signatures and authorisation. */
export interface ReadPdu {
  /** Without `unsigned`, which no signature covers. */
  readonly pdu: Pdu
  readonly eventId: EventId
  /** Canonical JSON of {@link ReadPdu.pdu}. */
  readonly json: string
  /** The text that signatures cover, and the reference hash. */
  readonly signedText: string
  /** The content hash did not match: this is the redacted copy. */
  readonly isRedacted: boolean
}

/**
 * Reads a PDU of another server. Checks its shape, its size, canonical JSON by room version, and its content hash. If the hash is wrong,
 * the result is the redacted copy (server-server API, "Checks performed on receipt of a PDU", 1 and 3). Signatures, 2, are checked on the
 * result, so that they cannot be checked with content that is removed afterwards.
 *
 * Two rules go beyond the published format, in every room version: lone surrogates are refused, because they have no UTF-8 form that could
 * be hashed; and the `age_ts` of old servers is dropped together with `unsigned`.
 *
 * @param raw parsed JSON, not yet known to be an object, its large integers exact (see `readExactJson`)
 * @param offence one that was found in the text of this event; the parsed value may not show it any more
 */
export function readPdu(version: RoomVersion, raw: JsonValue, offence?: JsonOffence): ReadPdu | Refusal {
  if (!isObject(raw)) return refuse('an event must be an object', 'M_BAD_JSON')
  const { unsigned, age_ts, ...kept } = raw
  const flaw = flawIn(version, kept, offence)
  if (flaw !== undefined) return refuse(flaw, 'M_BAD_JSON')
  const shape = checkShape(version, unsigned === undefined ? kept : { ...kept, unsigned })
  if (!shape.allowed) return shape
  const pdu = kept as Pdu
  const texts = eventTexts(version, pdu)
  return isTooLarge(Buffer.byteLength(texts.json)) ?? readChecked(version, pdu, texts)
}

/** The id of an event, even if the event is not valid; undefined if it cannot have one. */
export function eventIdIn(version: RoomVersion, raw: JsonValue): EventId | undefined {
  if (!isObject(raw)) return undefined
  if (version.eventIdFormat === 'opaque') return isEventId(raw.event_id) ? raw.event_id : undefined
  try {
    return eventIdOf(version, raw as Pdu)
  } catch {
    return undefined
  }
}

function flawIn(version: RoomVersion, pdu: JsonObject, stated: JsonOffence | undefined): string | undefined {
  try {
    const offence = offenceIn(pdu) ?? stated
    if (offence === 'lone-surrogate') return 'the event holds half a surrogate pair'
    if (offence === undefined || !version.enforcesCanonicalJson) return undefined
    if (offence === 'integer-range') return 'the event holds an integer past 2^53-1'
    return 'the event holds a number that canonical JSON forbids'
  } catch (error) {
    if (error instanceof JsonTooDeepError) return 'the event is nested too deeply'
    throw error
  }
}

function readChecked(version: RoomVersion, pdu: Pdu, { json, hashed, signed }: EventTexts): ReadPdu {
  const eventId = version.eventIdFormat === 'opaque' ? pdu.event_id! : idOfText(version, signed)
  if (isHash(pdu.hashes.sha256, sha256Base64(hashed)))
    return { pdu, eventId, json, signedText: signed, isRedacted: false }
  const redacted = redact(version, pdu)
  return { pdu: redacted, eventId, json: encodeCanonical(redacted), signedText: signed, isRedacted: true }
}

/** Other servers may write a hash in either alphabet, and padded. */
function isHash(stated: string, found: string): boolean {
  return stated === found || decodeBase64(stated)?.equals(Buffer.from(found, 'base64')) === true
}
