import type { Membership } from '../../../core/event/content.ts'
import type { EventId } from '../../../core/ids.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { RoomEvent } from './room-event.ts'
import type { Located } from './state-log.ts'

/** What is known around an event that needs a place. */
export interface Surroundings {
  /** The same event, if it is stored as an outlier. */
  readonly outlier: RoomEvent | undefined
  /** The `prev_events` whose place is known. */
  readonly prevs: readonly RoomEvent[]
  /** Soft-failed and rejected events that it builds on, with those that these build on. The branches behind them end here. */
  readonly passedOver: ReadonlySet<EventId>
  /** The missing events that those build on. */
  readonly missingBehind: readonly EventId[]
  /** The events that it cites, and the create event. */
  readonly cited: ReadonlyMap<EventId, RoomEvent>
  /** The state before it as another server claims it, if one of its `prev_events` is missing. */
  readonly claimed: StateMap | undefined
  /** The memberships of that state by event number, where they are in memory: the state may be large. */
  readonly claimedMemberships?: ReadonlyMap<number, Membership>
  /** Whether most members are missing from that state. The resync writes them to the log behind the event later. */
  readonly lacksMembers?: boolean
  /** Whether an accepted event already refers to it. */
  readonly isReferenced: boolean
  /** Redactions of it that arrived before it. */
  readonly redactions: readonly RoomEvent[]
  /** The event that it redacts. */
  readonly target: RoomEvent | undefined
  /** Whether it is our own join, which a resident server accepted. The state that we had of the room cannot refuse it. */
  readonly isOwnJoin: boolean
  /** Whether it is stored only if it is accepted. */
  readonly isOffered: boolean
  /** Set for backfilled history, which does not change the room's current state. */
  readonly past?: Past
}

/** Where backfilled history goes in the timeline. */
export interface Past {
  /** Its position in the timeline. */
  readonly pos: number
  /** The room's count of notifiable events there. Backfilled events never count. */
  readonly notifiable: number
  /** The state right after the gap. Most states within the gap are close to it. */
  readonly near: Located
  /**
   * The number of the event after the gap. If an event of the gap is excluded, the events missing before it become missing before this one.
   */
  readonly holderNid: number
}
