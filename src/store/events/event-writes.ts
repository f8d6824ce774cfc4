import type { Integer } from '../../core/large-integers.ts'
import type { Membership } from '../rooms/rooms.ts'
import type { EventRow } from './events.ts'
import type { RelationBatch, RelationRemoval } from './relation-writes.ts'
import type { StickyWrite } from './sticky.ts'
import type { RedactedPlace, UnreadBatch } from './unread-writes.ts'

/** A room's head after a batch. */
export interface HeadWrite {
  readonly roomNid: number
  readonly roomId: string
  readonly roomVersion: string
  /** The version that the batch was built on; 0 creates the room. */
  readonly expected: number
  /** The newest event then. */
  readonly expectedNid: number
  readonly version: number
  readonly extremities: readonly number[]
  /** How many of the extremities the current state resolves. */
  readonly merged: number
  readonly depth: Integer
  readonly lastPos: number
  readonly lastNid: number
  readonly notifiable: number
  readonly stateChain: number
  readonly stateSeq: number
}

/** A new event: its row. */
export type EventWrite = EventRow

export interface KeyWrite {
  readonly roomNid: number
  readonly keyId: number
  readonly type: string
  readonly stateKey: string
}

export interface ChangeWrite {
  readonly roomNid: number
  readonly chain: number
  readonly seq: number
  readonly keyId: number
  readonly eventNid: number
}

/** A new chain, which branches off another chain after one of its changes. */
export interface ChainWrite {
  readonly roomNid: number
  readonly chain: number
  readonly parentChain: number
  readonly parentSeq: number
}

/** Ends a resync: the chain of the join now branches off its parent after the fetched members, and the room's state is complete. */
export interface ResyncWrite extends ChainWrite {
  readonly joinId: string
  /** From this position of the stream on. */
  readonly position: number
}

/** An event refers to a missing event. */
export interface GapWrite {
  readonly roomNid: number
  readonly missingId: string
  readonly eventNid: number
}

/** A missing event has come, so events no longer have a gap there. */
export interface GapFilled {
  readonly roomNid: number
  readonly missingId: string
}

/** A redaction came before its target. */
export interface EarlyRedactionWrite {
  readonly roomNid: number
  readonly targetId: string
  readonly redactionNid: number
}

export interface MemberWrite {
  readonly userNid: number
  readonly roomNid: number
  readonly membership: Membership
  readonly eventNid: number
  /** The stream position of the change. */
  readonly changedAt: number
}

export interface TxnWrite {
  readonly tokenNid: number
  /** Earlier logins of the device: the same transaction id under one of these is the same request. */
  readonly earlierTokens: readonly number[]
  readonly hash: string
  readonly roomNid: number
  readonly eventNid: number
  readonly ts: number
}

export interface RedactionWrite {
  readonly roomNid: number
  readonly targetNid: number
  readonly redactionNid: number
  /** The redacted JSON of the target. */
  readonly json: string
  readonly authContent: string | null
  /** Its place, if it is a new event of the timeline that was not redacted before. */
  readonly place: RedactedPlace | undefined
  /** How the target related to another event. */
  readonly relation: RelationRemoval | undefined
}

/** Everything that one commit writes. Each head, member and transaction id occurs at most once in a batch. */
export interface EventBatch {
  readonly heads: readonly HeadWrite[]
  readonly events: readonly EventWrite[]
  /** The new rows of outliers that get a place in the room. */
  readonly promoted: readonly EventWrite[]
  readonly chains: readonly ChainWrite[]
  readonly resynced: readonly ResyncWrite[]
  readonly gaps: readonly GapWrite[]
  readonly filled: readonly GapFilled[]
  readonly earlyRedactions: readonly EarlyRedactionWrite[]
  readonly keys: readonly KeyWrite[]
  readonly changes: readonly ChangeWrite[]
  readonly members: readonly MemberWrite[]
  readonly unread: UnreadBatch
  readonly txns: readonly TxnWrite[]
  readonly redactions: readonly RedactionWrite[]
  readonly relations: RelationBatch
  readonly sticky: readonly StickyWrite[]
}
