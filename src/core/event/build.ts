import { hash } from 'node:crypto'
import type { EventId, RoomId, ServerName, UserId } from '../ids.ts'
import type { JsonObject } from '../json.ts'
import { type Integer, successorOf } from '../large-integers.ts'
import type { RoomVersion } from '../room-version.ts'
import { encodeCanonical } from '../signing/canonical-json.ts'
import { referenceOf, sha256Base64 } from '../signing/event-hash.ts'
import type { SigningKey } from '../signing/key.ts'
import {
  checkFormat,
  type EventReference,
  MAX_EVENT_BYTES,
  type Pdu,
  referencedId,
  refuse,
  type Verdict,
} from './format.ts'
import { redactContent } from './redact.ts'
import { STICKY } from './sticky.ts'

/** A local event before hashes and signatures. */
export interface EventDraft {
  readonly type: string
  readonly sender: UserId
  /** Absent from a create event whose hash becomes the room id. */
  readonly room_id?: RoomId | undefined
  readonly state_key?: string | undefined
  readonly content: JsonObject
  readonly origin_server_ts: Integer
  /** Limited to the maximum of the room version. */
  readonly depth: Integer
  /** With hashes in room versions 1 and 2; in all others hashes are ignored. */
  readonly prev_events: readonly EventReference[]
  readonly auth_events: readonly EventReference[]
  /** The target of a redaction. It is written to the place that the room version defines. */
  readonly redacts?: EventId | undefined
  /** Chosen by the caller in room versions 1 and 2, ignored in all others. */
  readonly event_id?: EventId | undefined
  readonly unsigned?: JsonObject
  /** How long the event is sticky, in milliseconds (MSC4354). */
  readonly stickyMs?: number | undefined
  /** Write `origin` even if the room version does not need it: joins, knocks, leaves and invites between servers have it (server-server API, `InviteEvent`). */
  readonly namesOrigin?: true
}

export interface BuiltEvent {
  readonly eventId: EventId
  readonly pdu: Pdu
  /** Canonical JSON of the whole PDU, its `unsigned` included. */
  readonly json: string
  /** The reference that later events of the room use. */
  readonly reference: EventReference
}

/**
 * Builds, hashes and signs a local event of `origin`.
 *
 * It needs three texts: for the content hash, for the signature and the reference hash, and for storage. They share most members, and
 * canonical order is alphabetical. So each member is encoded once, and the texts are concatenated by hand.
 *
 * @throws TypeError if the draft lacks what room version 1 or 2 needs (see {@link EventDraft})
 */
export function buildEvent(version: RoomVersion, draft: EventDraft, origin: ServerName, key: SigningKey): BuiltEvent {
  const pdu = unhashedPdu(version, draft, origin)
  const content = encodeCanonical(pdu.content)
  const text = memberTexts(pdu)
  pdu.hashes.sha256 = sha256Base64(
    `${text.first}${content}${text.depth}${text.sticky}${text.origin}${text.middle}${text.redacts}${text.room}${text.last}}`,
  )

  const hashes = `"hashes":{"sha256":"${pdu.hashes.sha256}"},`
  const redactedContent = encodeCanonical(redactContent(version, pdu.type, pdu.content))
  const keptOrigin = version.redaction.topLevel.has('origin') ? text.origin : ''
  const signed = Buffer.from(
    `${text.first}${redactedContent}${text.depth}${hashes}${keptOrigin}${text.middle}${text.room}${text.last}}`,
  )
  const signature = key.sign(signed)
  pdu.signatures[origin] = { [key.keyId]: signature }

  const signatures = `"signatures":{${encodeCanonical(origin)}:{${encodeCanonical(key.keyId)}:"${signature}"}},`
  const json = `${text.first}${content}${text.depth}${hashes}${text.sticky}${text.origin}${text.middle}${text.redacts}${text.room}${signatures}${text.last}${text.unsigned}}`
  const reference = referenceOf(version, pdu.event_id, hash('sha256', signed, 'buffer'))
  return { eventId: referencedId(reference), pdu, json, reference }
}

/** The depth of a new event whose previous events have at most this depth. */
export function nextDepth({ maxDepth }: RoomVersion, depth: Integer): Integer {
  return depth < maxDepth ? successorOf(depth) : maxDepth
}

/** Whether a local event has the format of its room version, and our own limit of size. */
export function checkBuilt(version: RoomVersion, built: BuiltEvent): Verdict {
  const bytes = Buffer.byteLength(built.json)
  if (bytes > MAX_EVENT_BYTES) return refuse(`the event is larger than ${MAX_EVENT_BYTES} bytes`, 'M_TOO_LARGE')
  return checkFormat(version, built.pdu, bytes)
}

function unhashedPdu(version: RoomVersion, draft: EventDraft, origin: ServerName): Pdu {
  const { redacts } = draft
  const pdu: Pdu = {
    type: draft.type,
    sender: draft.sender,
    content: redacts !== undefined && version.redactsIsInContent ? { ...draft.content, redacts } : draft.content,
    origin_server_ts: draft.origin_server_ts,
    depth: draft.depth > version.maxDepth ? version.maxDepth : draft.depth,
    prev_events: referencesOf(version, draft.prev_events),
    auth_events: referencesOf(version, draft.auth_events),
    hashes: { sha256: '' },
    signatures: {},
  }
  if (draft.room_id !== undefined) pdu.room_id = draft.room_id
  if (draft.state_key !== undefined) pdu.state_key = draft.state_key
  if (draft.stickyMs !== undefined) pdu[STICKY] = { duration_ms: draft.stickyMs }
  if (draft.unsigned !== undefined) pdu.unsigned = draft.unsigned
  if (redacts !== undefined && !version.redactsIsInContent) pdu.redacts = redacts
  if (version.eventsNameOrigin || draft.namesOrigin) pdu.origin = origin
  if (version.eventIdFormat === 'opaque') pdu.event_id = required(draft.event_id)
  return pdu
}

function referencesOf(version: RoomVersion, references: readonly EventReference[]): EventReference[] {
  if (!version.referencesCarryHashes) return references.map(referencedId)
  return references.map((reference) => required(typeof reference === 'string' ? undefined : reference))
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError('this room version needs the event id, and references with hashes')
  return value
}

/** The texts of the members around `content`, `hashes` and `signatures`, with their commas. */
function memberTexts(pdu: Pdu) {
  const member = (name: keyof Pdu & string): string =>
    pdu[name] === undefined ? '' : `"${name}":${encodeCanonical(pdu[name])},`
  return {
    first: `{${member('auth_events')}"content":`,
    depth: `,${member('depth')}${member('event_id')}`,
    // A redaction removes it, so it is not signed.
    sticky: member(STICKY),
    origin: member('origin'),
    middle: `${member('origin_server_ts')}${member('prev_events')}`,
    redacts: member('redacts'),
    room: `${member('room_id')}${member('sender')}`,
    last: `${member('state_key')}"type":${encodeCanonical(pdu.type)}`,
    unsigned: pdu.unsigned === undefined ? '' : `,"unsigned":${encodeCanonical(pdu.unsigned)}`,
  }
}
