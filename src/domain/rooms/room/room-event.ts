import type { EventReference, Pdu } from '../../../core/event/format.ts'
import type { EventId, UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import { parseExact } from '../../../core/large-integers.ts'
import type { RoomVersion } from '../../../core/room-version.ts'
import { referenceTo } from '../../../core/signing/event-hash.ts'
import type { EventRow, Standing } from '../../../store/events/events.ts'
import type { StatePoint } from '../../../store/events/state.ts'
import type { Head } from './head.ts'

/** The pieces of an event as clients get it, cut where what differs between readers goes. */
export interface Rendered {
  /** From `{` to `"unsigned":{"age":` */
  readonly head: Buffer
  /** The rest of `unsigned`, without its closing brace. */
  readonly unsigned: string
  /** What follows `unsigned`, without the closing brace of the event. */
  readonly tail: string
  /** The events whose content it repeats, with the redactions that were applied to them by then. */
  readonly repeated: readonly { readonly nid: number; readonly redactedBy: number | undefined }[]
}

/**
 * Bytes of an event's members and short texts; of its parsed form, and of its client form, beside their texts. Measured: a test compares
 * what these make with the heap.
 */
const MEMBERS_BYTES = 420
const PARSED_BYTES = 400
const RENDERED_BYTES = 260
const REPETITION_BYTES = 64

/** An event of a room as this server holds it: its place, and its immutable bytes, parsed when somebody asks. */
export class RoomEvent {
  /** Its number. */
  readonly nid: number
  /** Position in the stream of all events. */
  readonly streamPos: number
  readonly roomNid: number
  /** Position in the room's timeline; NaN for events that are not part of it. */
  readonly pos: number
  /** Undefined for accepted events. */
  readonly standing: Standing | undefined
  /** Why it was rejected or soft-failed. */
  readonly reason: string | undefined
  readonly id: EventId
  readonly type: string
  readonly senderNid: number
  /** Milliseconds, as its sender's server had it. */
  readonly ts: number
  /** The room's count of notifiable events, this one included. */
  readonly notifiable: number
  /** Room-local number of its `(type, state_key)`; undefined for message events, and for those that were rejected from the first. */
  readonly keyId: number | undefined
  /** The state event that this one took the place of. */
  readonly replacesNid: number | undefined
  /** The redaction that was applied to `json`. */
  readonly redactedBy: number | undefined
  readonly stateChain: number
  /** The change after which the room's state was that before this event. */
  readonly stateSeq: number
  /** The events by which a state event is authorised. */
  readonly authNids: readonly number[] | undefined
  readonly txnToken: number | undefined
  readonly txnId: string | undefined
  /** Of a redacted event what authorisation still reads of its content, where that is more than is left. */
  readonly authContent: string | undefined
  /** Canonical JSON as federated. */
  readonly json: string
  #rendered: Rendered | undefined
  readonly #current: StatePoint | undefined
  #bytes: number
  #pdu: Pdu | undefined

  /** Made for some readers: it tells less than the event itself, and is not shared with others. */
  readonly isCopy: boolean

  constructor(row: EventRow, pdu?: Pdu, isCopy = false) {
    this.nid = row.event_nid
    this.streamPos = row.stream_pos ?? row.event_nid
    this.roomNid = row.room_nid
    this.pos = row.room_pos ?? Number.NaN
    this.standing = row.standing ?? undefined
    this.reason = row.reason ?? undefined
    this.id = row.event_id
    this.type = row.type
    this.senderNid = row.sender_nid
    this.ts = row.origin_server_ts
    this.notifiable = row.notifiable
    this.keyId = row.key_id ?? undefined
    this.replacesNid = row.replaces_nid ?? undefined
    this.redactedBy = row.redacted_by ?? undefined
    this.stateChain = row.state_chain
    this.stateSeq = row.state_seq
    this.authNids = row.auth_nids ?? undefined
    this.#current = row.current_chain === null ? undefined : { chain: row.current_chain, seq: row.current_seq! }
    this.txnToken = row.txn_token ?? undefined
    this.txnId = row.txn_id ?? undefined
    this.authContent = row.auth_content ?? undefined
    this.json = row.json
    this.isCopy = isCopy
    this.#pdu = pdu
    // A text with any character beyond Latin-1 takes two bytes for each.
    const textBytes = Buffer.byteLength(row.json) === row.json.length ? row.json.length : 2 * row.json.length
    this.#bytes = MEMBERS_BYTES + textBytes + 8 * (row.auth_nids?.length ?? 0) + 2 * (row.auth_content?.length ?? 0)
    if (pdu) this.#bytes += PARSED_BYTES + this.json.length
  }

  /** What it holds in memory by now: asked for at each use, so it is counted when that grows. */
  get bytes(): number {
    return this.#bytes
  }

  /** The client format, once somebody asked for it. */
  get rendered(): Rendered | undefined {
    return this.#rendered
  }

  set rendered(rendered: Rendered) {
    if (this.#rendered) this.#bytes -= bytesOf(this.#rendered)
    this.#rendered = rendered
    this.#bytes += bytesOf(rendered)
  }

  /** The parsed event. It is shared: never change it. */
  get pdu(): Pdu {
    if (this.#pdu) return this.#pdu
    // Our own bytes: they were checked before they were stored.
    this.#pdu = parseExact(this.json) as Pdu
    // What is parsed holds the texts once more.
    this.#bytes += PARSED_BYTES + this.json.length
    return this.#pdu
  }

  get content(): JsonObject {
    return this.pdu.content
  }

  get sender(): UserId {
    return this.pdu.sender
  }

  get isState(): boolean {
    return this.keyId !== undefined && this.standing !== 'rejected'
  }

  /** Whether clients may ever see it. Soft-failed and rejected events and outliers are no part of the timeline. */
  get isInTimeline(): boolean {
    return !Number.isNaN(this.pos)
  }

  /** Whether it was fetched to fill a gap: part of the timeline, and never news. */
  get isHistory(): boolean {
    return this.streamPos < 0
  }

  /** Whether the state of the room around it is known, so that others may build on it. */
  get hasPlace(): boolean {
    return this.stateChain >= 0
  }

  /** The point of the state log right before it. */
  get pointBefore(): StatePoint {
    return { chain: this.stateChain, seq: this.stateSeq }
  }

  /** The point of the state log right after it. */
  get pointAfter(): StatePoint {
    return { chain: this.stateChain, seq: this.stateSeq + (this.isState ? 1 : 0) }
  }

  /** The room's current state once this event was taken in: where branches meet, more than what the event itself knew. */
  get currentPoint(): StatePoint {
    return this.#current ?? this.pointAfter
  }

  /** Whether the room had no other branch when this event was taken in. */
  get isOnTip(): boolean {
    return this.#current === undefined
  }

  /** How later events of its room name it. */
  reference(version: RoomVersion): EventReference {
    return version.referencesCarryHashes ? referenceTo(version, this.pdu) : this.id
  }

  /** The event as the rules of authorisation see it, redacted or not. */
  get authPdu(): Pdu {
    return this.authContent === undefined
      ? this.pdu
      : { ...this.pdu, content: parseExact(this.authContent) as JsonObject }
  }

  /** What a redaction leaves of it. */
  redacted(redactionNid: number, json: string, authContent: string | null): RoomEvent {
    return new RoomEvent({ ...this.toRow(), redacted_by: redactionNid, json, auth_content: authContent })
  }

  /** Part of the timeline from here on: its newest event, with the room's state and counts as they are there. */
  shownAt({ pos, nid, notifiable, chain, seq }: Pick<Head, 'pos' | 'nid' | 'notifiable' | 'chain' | 'seq'>): RoomEvent {
    const place = { room_pos: pos, stream_pos: nid, notifiable, current_chain: chain, current_seq: seq }
    return new RoomEvent({ ...this.toRow(), ...place })
  }

  toRow(): EventRow {
    return {
      event_nid: this.nid,
      room_nid: this.roomNid,
      room_pos: this.isInTimeline ? this.pos : null,
      sender_nid: this.senderNid,
      origin_server_ts: this.ts,
      notifiable: this.notifiable,
      replaces_nid: this.replacesNid ?? null,
      redacted_by: this.redactedBy ?? null,
      txn_token: this.txnToken ?? null,
      state_chain: this.stateChain,
      state_seq: this.stateSeq,
      key_id: this.keyId ?? null,
      event_id: this.id,
      type: this.type,
      txn_id: this.txnId ?? null,
      standing: this.standing ?? null,
      reason: this.reason ?? null,
      stream_pos: this.streamPos === this.nid ? null : this.streamPos,
      current_chain: this.#current?.chain ?? null,
      current_seq: this.#current?.seq ?? null,
      auth_nids: this.authNids ?? null,
      auth_content: this.authContent ?? null,
      json: this.json,
    }
  }
}

const COPY = '~'

/** Under which a membership in a room that we take no part in is kept: the event itself may come with its room, and is judged then. */
export const copyOf = (eventId: EventId): EventId => `${COPY}${eventId}` as EventId

/** What an event is called in its room. */
export function nameOf({ id }: Pick<RoomEvent, 'id'>): EventId {
  return id.startsWith(COPY) ? (id.slice(COPY.length) as EventId) : id
}

/**
 * The row of an event whose place in its room is not known. (Each member is named: an object put together of several has no fixed
 * layout, and of these there are as many as a large room has members.)
 */
export function outlierRow(
  event: Pick<EventRow, 'event_nid' | 'room_nid' | 'sender_nid' | 'event_id' | 'json'> &
    Pick<EventRow, 'type' | 'origin_server_ts' | 'key_id' | 'standing' | 'reason' | 'auth_nids'>,
): EventRow {
  return {
    event_nid: event.event_nid,
    room_nid: event.room_nid,
    room_pos: null,
    sender_nid: event.sender_nid,
    origin_server_ts: event.origin_server_ts,
    notifiable: 0,
    replaces_nid: null,
    redacted_by: null,
    txn_token: null,
    state_chain: -1,
    state_seq: 0,
    key_id: event.key_id,
    event_id: event.event_id,
    type: event.type,
    txn_id: null,
    standing: event.standing,
    reason: event.reason,
    stream_pos: null,
    current_chain: null,
    current_seq: null,
    auth_nids: event.auth_nids,
    auth_content: null,
    json: event.json,
  }
}

function bytesOf({ head, unsigned, tail, repeated }: Rendered): number {
  return RENDERED_BYTES + head.length + unsigned.length + tail.length + REPETITION_BYTES * repeated.length
}
