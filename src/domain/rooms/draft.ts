import type { EventId, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { RoomEvent } from './room-event.ts'

/** What a local user wants to happen in a room. */
export interface Draft {
  readonly type: string
  /** Present on state events. */
  readonly stateKey?: string
  readonly content: JsonObject
  readonly sender: UserId
  readonly senderNid: number
  /** The event that a redaction is for. */
  readonly redacts?: EventId
  /** Milliseconds; now when left out. */
  readonly ts?: number
}

/** The transaction id under which a client sent something. */
export interface Transaction {
  readonly tokenNid: number
  readonly txnId: string
  /** Hash of the whole path. */
  readonly hash: string
}

/** Reads the state of a head; the room's own facts first, then events of the same unit, which no cache has yet. */
export type StateReader = (type: string, stateKey: string) => RoomEvent | undefined
