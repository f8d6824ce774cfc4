import type { Membership } from '../../../core/event/content.ts'
import type { EventId } from '../../../core/ids.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { RoomEvent } from './room-event.ts'
import type { Located } from './state-log.ts'

/** What is known around an event that is to be placed. */
export interface Surroundings {
  /** The same event, known as an outlier. */
  readonly outlier: RoomEvent | undefined
  /** Of `prev_events`, those whose place is known. */
  readonly prevs: readonly RoomEvent[]
  /** Soft-failed and rejected events that it builds on, and what they build on: the branches behind them end here. */
  readonly passedOver: ReadonlySet<EventId>
  /** Of what those build on, what has not come. */
  readonly missingBehind: readonly EventId[]
  /** What it cites, and the create event. */
  readonly cited: ReadonlyMap<EventId, RoomEvent>
  /** The state before it as another server claims it: where a `prev_events` is missing. */
  readonly claimed: StateMap | undefined
  /** The memberships of that state by the numbers of their events, where they are at hand: it may be large. */
  readonly claimedMemberships?: ReadonlyMap<number, Membership>
  /** Most members are missing in that: they come later, and are written to the log behind the event. */
  readonly lacksMembers?: boolean
  /** An accepted event refers to it already. */
  readonly isReferenced: boolean
  /** Redactions of it that came before it. */
  readonly redactions: readonly RoomEvent[]
  /** What it redacts. */
  readonly target: RoomEvent | undefined
  /** A join of ours that a server of the room has accepted: what we held the room's state to be is no measure of it. */
  readonly isOwnJoin: boolean
  /** It is not kept unless the room accepts it. */
  readonly isOffered: boolean
  /** Set for history that is fetched later: the room's present is none of its business. */
  readonly past?: Past
}

/** Where history goes that fills a gap in the timeline. */
export interface Past {
  /** The place in the timeline. */
  readonly pos: number
  /** The room's count of notifiable events there: history counts for nobody. */
  readonly notifiable: number
  /** The state right after the gap, which that within it mostly is. */
  readonly near: Located
  /** The event after the gap: what is missing behind an event that is kept out is missing before this one. */
  readonly holderNid: number
}
