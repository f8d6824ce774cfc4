import type { ReadPdu } from '../../../core/event/read.ts'
import type { Standing } from '../../../store/events/events.ts'
import type { StatePoint } from '../../../store/events/state.ts'
import type { Head } from '../room/head.ts'
import type { Room } from '../room/room.ts'
import type { Located } from '../room/state-log.ts'
import type { Surroundings } from '../room/surroundings.ts'

/** Why an event is excluded from the room. */
export interface Exclusion {
  readonly standing: Exclude<Standing, 'outlier'>
  readonly reason: string
}

/** Puts backfilled events below every position of the stream, so that nobody gets them as new. */
export const HISTORY_OFFSET = 2 ** 52

/**
 * Stands for the number of an event that is no state: nothing refers to it before it is queued, and then it gets one, which is its place in
 * the stream too. Most events are such, and a place in the stream that is not the number costs a column and an entry of an index. It is
 * above all numbers, because what is being placed is newer than all that has one.
 */
export const NOT_NUMBERED = HISTORY_OFFSET - 1

/** An event that needs a place, with its number and its sender's number. */
export interface Case {
  readonly room: Room
  readonly read: ReadPdu
  readonly around: Surroundings
  /** `NOT_NUMBERED` if it gets its number later. */
  readonly nid: number
  readonly senderNid: number
  /** Why the room's policy server does not recommend it; undefined if it does. It is asked once. */
  objection(): Promise<string | undefined>
}

/** The place of an event, relative to the head that it was computed on. */
export interface Site {
  readonly head: Head
  readonly before: Located
  /** The point before it, on the chain that its own change continues. */
  readonly at: StatePoint
  readonly keyId: number | undefined
  readonly exclusion: Exclusion | undefined
}
