import type {
  ChainWrite,
  EarlyRedactionWrite,
  GapFilled,
  GapWrite,
  KeyWrite,
  RedactionWrite,
  ResyncWrite,
  TxnWrite,
} from '../../../store/events/event-writes.ts'
import type { Head, StateChange } from '../room/head.ts'
import type { MembershipChange, Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { UnreadNews } from './unread-news.ts'

/** Events of one room that are written together or not at all, and what else their commit writes. */
export interface Unit {
  readonly room: Room
  readonly before: Head
  readonly after: Head
  /** New events. */
  readonly events: readonly RoomEvent[]
  /** Outliers that get their place in the room. */
  readonly promoted: readonly RoomEvent[]
  readonly keys: readonly KeyWrite[]
  /** In ascending order within each chain. */
  readonly changes: readonly StateChange[]
  readonly chains: readonly ChainWrite[]
  /** Resyncs that this unit completes. */
  readonly resynced: readonly ResyncWrite[]
  readonly gaps: readonly GapWrite[]
  readonly filled: readonly GapFilled[]
  readonly earlyRedactions: readonly EarlyRedactionWrite[]
  readonly members: readonly MembershipChange[]
  /** Of the events in threads, and of those that stand out to somebody. */
  readonly unread: readonly UnreadNews[]
  readonly txn: TxnWrite | undefined
  readonly redactions: readonly (RedactionWrite & { readonly event: RoomEvent })[]
}

/** The empty values of what an event at the tip of the room does not write. */
export const NO_GRAPH = { promoted: [], chains: [], resynced: [], gaps: [], filled: [], earlyRedactions: [] } as const

/** The new state keys of a room. The caller writes them with its unit, which must be the next to be enqueued. */
export function keyWrites(room: Room): KeyWrite[] {
  return room.keys
    .takeUnwritten()
    .map(({ key_id, type, state_key }) => ({ roomNid: room.nid, keyId: key_id, type, stateKey: state_key }))
}

/** The events of a unit that its commit brings into the stream: the new and the promoted. */
export function streamed(unit: Pick<Unit, 'events' | 'promoted'>): readonly RoomEvent[] {
  return unit.promoted.length === 0 ? unit.events : [...unit.events, ...unit.promoted]
}

/**
 * `moved`: another write came first; load the room again and build anew.
 * `repeated`: the transaction id was used before, and this event is its answer.
 */
export type Outcome = { kind: 'committed' } | { kind: 'moved' } | { kind: 'repeated'; eventId: string }
