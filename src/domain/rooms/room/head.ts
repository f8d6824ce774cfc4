import type { HashedReference, Pdu } from '../../../core/event/format.ts'
import type { EventId } from '../../../core/ids.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { StatePoint } from '../../../store/events/state.ts'

export interface Extremity {
  readonly nid: number
  readonly id: EventId
  /** How the next event refers to it: by id, and in old room versions also by reference hash. */
  readonly reference: EventId | HashedReference
  /** The point of the state log right after it. */
  readonly after: StatePoint
}

/** The head of a room: what the next event builds on. Immutable; each event makes a new head. */
export interface Head extends StateHead {
  /** Counts events. A write names the version that it was built on, and is refused if the room's version is another by then. */
  readonly version: number
  /**
   * Events that no event of this room refers to yet. Those that `merged` counts come first; an event has a maximum of previous events, so
   * the rest wait.
   */
  readonly extremities: readonly Extremity[]
  /** The current state resolves this many extremities, from the first on. The next event of ours builds on these. */
  readonly merged: number
  readonly depth: Pdu['depth']
  /** Timeline position and stream position of the newest event. */
  readonly pos: number
  readonly nid: number
  readonly notifiable: number
}

/** The current state. With several extremities it is the resolution of their states. */
export interface StateHead {
  /** The chain of the state log where it stands. */
  readonly chain: number
  readonly seq: number
  readonly state: StateMap
  /** The number of the last change of `chain`; the current state may stand at an earlier one. */
  readonly tip: number
  /** The highest chain number. */
  readonly lastChain: number
}

/** Change number `seq` of a chain: sets a state key to an event's number, or to 0 for none. */
export interface StateChange {
  readonly chain: number
  readonly seq: number
  readonly keyId: number
  readonly eventNid: number
  /** The key's value before. */
  readonly before: number
}
