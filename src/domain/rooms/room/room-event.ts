import type { EventReference, Pdu } from '../../../core/event/format.ts'
import { memberTexts } from '../../../core/event/member-texts.ts'
import type { EventId, UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import { parseExact } from '../../../core/large-integers.ts'
import type { RoomVersion } from '../../../core/room-version.ts'
import { referenceTo } from '../../../core/signing/event-hash.ts'
import type { EventRow, Standing } from '../../../store/events/events.ts'
import type { AggregatedRow } from '../../../store/events/relations.ts'
import type { StatePoint } from '../../../store/events/state.ts'
import type { Head } from './head.ts'
import type { Repliers } from './repliers.ts'

/** The pieces of an event in the client format, cut at the places that differ between readers. */
export interface Rendered {
  /** From `{` to `"unsigned":{"age":` */
  readonly head: string
  /** The rest of `unsigned`, without its closing brace. */
  readonly unsigned: string
  /** What follows `unsigned`, without the closing brace of the event. */
  readonly tail: string
  readonly isSticky: boolean
  /** The events whose content it repeats, with the redactions applied to them when it was rendered. */
  readonly repeated: readonly { readonly nid: number; readonly redactedBy: number | undefined }[]
}

/** What is bundled with an event, for readers who ignore nobody and see the newest events. */
export interface Aggregates {
  readonly rows: readonly AggregatedRow[]
  /** Of its thread. */
  readonly repliers: Repliers
}

/**
 * Bytes of an event's members and short texts; of its parsed form without its texts; and of its client form without its texts. Measured: a
 * test compares them with the heap.
 */
const MEMBERS_BYTES = 420
const PARSED_BYTES = 400
const RENDERED_BYTES = 130
/** Bytes that a reference to another event takes less in the parsed form of an event that was built here: its text is that event's id. */
const SHARED_REFERENCE_BYTES = 60
/** Bytes of a short text without its characters. */
const TEXT_BYTES = 20
const REPETITION_BYTES = 64
/** Bytes of aggregates without rows, of a row, and of a replier with a map's slot. */
const AGGREGATES_BYTES = 300
const ROW_BYTES = 120
const REPLIER_BYTES = 100

/** An event of a room: its place and its immutable bytes, which are parsed when first needed. */
export class RoomEvent {
  /** Its number. */
  readonly nid: number
  /** Position in the event stream. */
  readonly streamPos: number
  readonly roomNid: number
  /** Position in the room's timeline; NaN for events outside the timeline. */
  readonly pos: number
  /** Undefined for accepted events. */
  readonly standing: Standing | undefined
  /** Why the event was rejected or soft-failed. */
  readonly reason: string | undefined
  readonly id: EventId
  readonly type: string
  readonly senderNid: number
  /** Milliseconds, by the clock of the sender's server. */
  readonly ts: number
  /** The room's count of notifiable events up to and including this one. */
  readonly notifiable: number
  /** Room-local number of its `(type, state_key)`; undefined for message events and for events that were rejected on arrival. */
  readonly keyId: number | undefined
  /** The state event that this one replaced. */
  readonly replacesNid: number | undefined
  /** The redaction that was applied to `json`. */
  readonly redactedBy: number | undefined
  readonly stateChain: number
  /** The last change of the chain before this event. */
  readonly stateSeq: number
  /** The auth events of a state event. */
  readonly authNids: readonly number[] | undefined
  readonly txnToken: number | undefined
  readonly txnId: string | undefined
  /** For a redacted event, the content that authorisation still reads, if that is more than the redaction left. */
  readonly authContent: string | undefined
  /** Canonical JSON, as servers exchange it. */
  readonly json: string
  #hasRelations: boolean
  #aggregates: Aggregates | undefined
  #relationsVersion = 0
  #rendered: Rendered | undefined
  readonly #current: StatePoint | undefined
  #bytes: number
  /** Bytes of a character of its texts in memory. */
  readonly #charBytes: number
  #pdu: Pdu | undefined
  #sender: UserId | undefined

  /** Whether it was made for one reader: it shows less than the event itself, and no cache shares it. */
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
    this.#hasRelations = row.has_relations
    this.isCopy = isCopy
    this.#pdu = pdu
    this.#charBytes = charBytesOf(row.json)
    this.#bytes =
      MEMBERS_BYTES +
      this.#charBytes * row.json.length +
      8 * (row.auth_nids?.length ?? 0) +
      2 * (row.auth_content?.length ?? 0)
    if (pdu) this.#bytes += PARSED_BYTES + this.json.length
  }

  /** An event that was just built here. */
  static built(row: EventRow, pdu: Pdu): RoomEvent {
    const event = new RoomEvent(row, pdu)
    event.#bytes -= SHARED_REFERENCE_BYTES * (pdu.auth_events.length + pdu.prev_events.length)
    return event
  }

  /** Bytes in memory. The caches read it at each use, so growth is stored, not computed. */
  get bytes(): number {
    return this.#aggregates === undefined ? this.#bytes : this.#bytes + bytesOfAggregates(this.#aggregates)
  }

  /** The client format; undefined until it is first needed. */
  get rendered(): Rendered | undefined {
    return this.#rendered
  }

  set rendered(rendered: Rendered) {
    if (this.#rendered) this.#bytes -= bytesOf(this.#rendered, this.#charBytes)
    this.#rendered = rendered
    this.#bytes += bytesOf(rendered, this.#charBytes)
  }

  /** The parsed event. All readers share it: never change it. */
  get pdu(): Pdu {
    if (this.#pdu) return this.#pdu
    // These bytes are our own: they were checked before they were stored.
    this.#pdu = parseExact(this.json) as Pdu
    // The parsed form holds the texts a second time.
    this.#bytes += PARSED_BYTES + this.json.length
    return this.#pdu
  }

  /** Whether other events may relate to it. If not, none does. */
  get hasRelations(): boolean {
    return this.#hasRelations
  }

  /** Another event relates to it, or one that did was redacted. */
  markRelated(): void {
    this.#hasRelations = true
    this.#relationsVersion++
    this.#aggregates = undefined
  }

  /** What was kept, as far as nothing has changed since. */
  get aggregates(): Aggregates | undefined {
    return this.#aggregates
  }

  /** Take this before reading what relates to it. */
  get relationsVersion(): number {
    return this.#relationsVersion
  }

  /** Keeps what was read, unless relations changed since `version`. */
  keepAggregates(aggregates: Aggregates, version: number): void {
    if (version === this.#relationsVersion) this.#aggregates = aggregates
  }

  get content(): JsonObject {
    return this.pdu.content
  }

  get sender(): UserId {
    if (this.#sender !== undefined) return this.#sender
    const own = this.#pdu === undefined ? senderIn(this.json) : undefined
    if (own !== undefined) this.#bytes += TEXT_BYTES + own.length
    this.#sender = own ?? this.pdu.sender
    return this.#sender
  }

  get isState(): boolean {
    return this.keyId !== undefined && this.standing !== 'rejected'
  }

  /** Whether clients may ever see it. Soft-failed and rejected events and outliers are no part of the timeline. */
  get isInTimeline(): boolean {
    return !Number.isNaN(this.pos)
  }

  /** Whether it was backfilled: it is part of the timeline, and no sync shows it as new. */
  get isHistory(): boolean {
    return this.streamPos < 0
  }

  /** Whether the state before it is known, so that other events may build on it. */
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

  /**
   * The room's current state right after this event came in. With several branches, it holds more than the state after this event alone.
   */
  get currentPoint(): StatePoint {
    return this.#current ?? this.pointAfter
  }

  /** Whether the room had no other branch when this event came in. */
  get isOnTip(): boolean {
    return this.#current === undefined
  }

  /** How later events of the room refer to it. */
  reference(version: RoomVersion): EventReference {
    return version.referencesCarryHashes ? referenceTo(version, this.pdu) : this.id
  }

  /** The event as the auth rules see it, redacted or not. */
  get authPdu(): Pdu {
    return this.authContent === undefined
      ? this.pdu
      : { ...this.pdu, content: parseExact(this.authContent) as JsonObject }
  }

  /** The redacted form of the event. */
  redacted(redactionNid: number, json: string, authContent: string | null): RoomEvent {
    return new RoomEvent({ ...this.toRow(), redacted_by: redactionNid, json, auth_content: authContent })
  }

  /** The event with its place as the newest of the timeline, with the room's state and counts at that place. */
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
      has_relations: this.#hasRelations,
      json: this.json,
    }
  }
}

const bytesOfAggregates = ({ rows, repliers }: Aggregates): number =>
  AGGREGATES_BYTES + ROW_BYTES * rows.length + REPLIER_BYTES * repliers.size

const COPY = '~'

/**
 * The id under which a membership is kept for a room that we are not in. The event itself may come later with its room, and is checked
 * then.
 */
export const copyOf = (eventId: EventId): EventId => `${COPY}${eventId}` as EventId

/** The event's id in its room. */
export function nameOf({ id }: Pick<RoomEvent, 'id'>): EventId {
  return id.startsWith(COPY) ? (id.slice(COPY.length) as EventId) : id
}

/**
 * The row of an event whose place in its room is not known. Each member is written out, because an object that is spread from several has
 * no fixed layout, and a large room has as many of these as members.
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
    has_relations: false,
    json: event.json,
  }
}

/** A text with any character beyond Latin-1 takes two bytes per character. */
function charBytesOf(text: string): number {
  return Buffer.byteLength(text) === text.length ? 1 : 2
}

/** The sender by the text of an event, without parsing it. The copy does not keep the text alive, which callers may outlive. */
function senderIn(json: string): UserId | undefined {
  const texts = memberTexts(json)
  return texts && (JSON.parse(texts.sender) as UserId)
}

function bytesOf({ head, unsigned, tail, repeated }: Rendered, charBytes: number): number {
  return RENDERED_BYTES + charBytes * head.length + unsigned.length + tail.length + REPETITION_BYTES * repeated.length
}
