import type { Integer } from '../../core/large-integers.ts'
import type { Membership } from '../rooms/rooms.ts'
import type { EventRow } from './events.ts'

/** A room's head as a batch leaves it. */
export interface HeadWrite {
  readonly roomNid: number
  readonly roomId: string
  readonly roomVersion: string
  /** The version that the batch was built on; 0 makes the room. */
  readonly expected: number
  readonly version: number
  readonly extremities: readonly number[]
  /** How many of them the current state resolves. */
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

/** A new chain, which continues another after a change of it. */
export interface ChainWrite {
  readonly roomNid: number
  readonly chain: number
  readonly parentChain: number
  readonly parentSeq: number
}

/** A room's members have come: the chain of the join continues its parent after them, and the room has no partial state any more. */
export interface ResyncWrite extends ChainWrite {
  readonly joinId: string
  /** From this position of the stream on. */
  readonly position: number
}

/** An event refers to one that we do not have. */
export interface GapWrite {
  readonly roomNid: number
  readonly missingId: string
  readonly eventNid: number
}

/** Events refer no longer to what we do not have: it came. */
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
  /** Where in the stream it came to be. */
  readonly changedAt: number
}

export interface HighlightWrite {
  readonly userNid: number
  readonly roomNid: number
  readonly eventNid: number
}

export interface TxnWrite {
  readonly tokenNid: number
  /** Under these the same id was the same request. */
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
  /** The target's bytes with all gone that redaction removes. */
  readonly json: string
  readonly authContent: string | null
}

/** All that one commit writes. Within a batch a head, a member and a transaction id occur once. */
export interface EventBatch {
  readonly heads: readonly HeadWrite[]
  readonly events: readonly EventWrite[]
  /** Events that were outliers and take their place in the room: their rows as they are to be. */
  readonly promoted: readonly EventWrite[]
  readonly chains: readonly ChainWrite[]
  readonly resynced: readonly ResyncWrite[]
  readonly gaps: readonly GapWrite[]
  readonly filled: readonly GapFilled[]
  readonly earlyRedactions: readonly EarlyRedactionWrite[]
  readonly keys: readonly KeyWrite[]
  readonly changes: readonly ChangeWrite[]
  readonly members: readonly MemberWrite[]
  readonly highlights: readonly HighlightWrite[]
  readonly txns: readonly TxnWrite[]
  readonly redactions: readonly RedactionWrite[]
}
