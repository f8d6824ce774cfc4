import type { EventReference, Pdu } from '../../core/event/format.ts'
import type { EventId, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { RoomVersion } from '../../core/room-version.ts'
import { referenceTo } from '../../core/signing/event-hash.ts'
import type { EventRow } from '../../store/events.ts'

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

/** An event of a room as this server holds it: its place, and its immutable bytes, parsed when somebody asks. */
export class RoomEvent {
  /** Position in the stream of all events. */
  readonly nid: number
  readonly roomNid: number
  /** Position in the room's timeline. */
  readonly pos: number
  readonly id: EventId
  readonly type: string
  readonly senderNid: number
  /** Milliseconds, as its sender's server had it. */
  readonly ts: number
  /** The room's count of notifiable events, this one included. */
  readonly notifiable: number
  /** Room-local number of its `(type, state_key)`; undefined for message events. */
  readonly keyId: number | undefined
  /** The state event that this one took the place of. */
  readonly replacesNid: number | undefined
  /** The redaction that was applied to `json`. */
  readonly redactedBy: number | undefined
  readonly stateChain: number
  /** The change after which the room's state was that before this event. */
  readonly stateSeq: number
  readonly txnToken: number | undefined
  readonly txnId: string | undefined
  /** Canonical JSON as federated. */
  readonly json: string
  /** The client format, once somebody asked for it. */
  rendered: Rendered | undefined
  #pdu: Pdu | undefined

  constructor(row: EventRow, pdu?: Pdu) {
    this.nid = row.event_nid
    this.roomNid = row.room_nid
    this.pos = row.room_pos
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
    this.txnToken = row.txn_token ?? undefined
    this.txnId = row.txn_id ?? undefined
    this.json = row.json
    this.#pdu = pdu
  }

  /** The parsed event. It is shared: never change it. */
  get pdu(): Pdu {
    // Our own bytes: they were checked before they were stored.
    this.#pdu ??= JSON.parse(this.json) as Pdu
    return this.#pdu
  }

  get content(): JsonObject {
    return this.pdu.content
  }

  get sender(): UserId {
    return this.pdu.sender
  }

  get isState(): boolean {
    return this.keyId !== undefined
  }

  /** How later events of its room name it. */
  reference(version: RoomVersion): EventReference {
    return version.referencesCarryHashes ? referenceTo(version, this.pdu) : this.id
  }

  /** What a redaction leaves of it. */
  redacted(redactionNid: number, json: string): RoomEvent {
    return new RoomEvent({ ...this.toRow(), redacted_by: redactionNid, json })
  }

  toRow(): EventRow {
    return {
      event_nid: this.nid,
      room_nid: this.roomNid,
      room_pos: this.pos,
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
      json: this.json,
    }
  }
}
