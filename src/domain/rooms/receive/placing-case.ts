import type { ReadPdu } from '../../../core/event/read.ts'
import type { Standing } from '../../../store/events/events.ts'
import type { StatePoint } from '../../../store/events/state.ts'
import type { Head } from '../room/head.ts'
import type { Room } from '../room/room.ts'
import type { Located } from '../room/state-log.ts'
import type { Surroundings } from '../room/surroundings.ts'

/** Why an event is kept out of the room. */
export interface Exclusion {
  readonly standing: Exclude<Standing, 'outlier'>
  readonly reason: string
}

/** An event to be placed, with its number and its sender's. */
export interface Case {
  readonly room: Room
  readonly read: ReadPdu
  readonly around: Surroundings
  readonly nid: number
  readonly senderNid: number
}

/** Where an event stands, by the head that was found. */
export interface Site {
  readonly head: Head
  readonly before: Located
  /** The point before it, on the chain that its own change continues. */
  readonly at: StatePoint
  readonly keyId: number | undefined
  readonly exclusion: Exclusion | undefined
}
