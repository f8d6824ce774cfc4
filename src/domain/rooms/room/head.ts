import type { HashedReference, Pdu } from '../../../core/event/format.ts'
import type { EventId } from '../../../core/ids.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { StatePoint } from '../../../store/events/state.ts'

export interface Extremity {
  readonly nid: number
  readonly id: EventId
  /** How the next event names it: the id, with its reference hash in old room versions. */
  readonly reference: EventId | HashedReference
  /** The point of the state log right after it. */
  readonly after: StatePoint
}

/** Where a room stands: what the next event is built on. Immutable; each event makes the next. */
export interface Head extends StateHead {
  /** Counts events; a write names the version it was built on and is refused when the room has moved on. */
  readonly version: number
  /** Events that none of ours refers to yet, and after them those that more than an event may build on have to wait for. */
  readonly extremities: readonly Extremity[]
  /** How many of the extremities, from the first on, the current state resolves: what the next event of ours builds on. */
  readonly merged: number
  readonly depth: Pdu['depth']
  /** Timeline position and stream position of the newest event. */
  readonly pos: number
  readonly nid: number
  readonly notifiable: number
}

/** The current state: with several extremities, what their states resolve to. */
export interface StateHead {
  /** The point of the state log where it stands. */
  readonly chain: number
  readonly seq: number
  readonly state: StateMap
  /** The last change of `chain`, which is not always the one it stands at. */
  readonly tip: number
  /** The highest number of a chain. */
  readonly lastChain: number
}

/** Change number `seq` of a chain: sets a state key to an event's number, 0 for none. */
export interface StateChange {
  readonly chain: number
  readonly seq: number
  readonly keyId: number
  readonly eventNid: number
  /** What the key was set to before. */
  readonly before: number
}
