import type { BudgetPart, ByteBudget } from '../../../core/byte-budget.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { WrittenEvents } from './written-events.ts'

/** What a first sync shows of a room to everybody who was in it for all of the timeline. */
export interface FirstSection {
  readonly timeline: WrittenEvents
  readonly limited: boolean
  /** The timeline position before the oldest event that is shown. */
  readonly before: number
  /** The lowest stream position of an event that is shown in the timeline, or bundled there. */
  readonly oldest: number
  /** Who sent the events. */
  readonly senders: readonly string[]
  /** The state that is shown, and of it the events that everybody is shown, by number. */
  readonly target: StateMap
  readonly state: WrittenEvents
  readonly stateNids: readonly number[]
  /** With members that are loaded lazily: those of the events above that are the senders'. */
  readonly senderNids: ReadonlySet<number>
  /** The threads that are bundled in the timeline, by the numbers of their roots. */
  readonly threads: readonly number[]
  /** Bytes in memory. */
  readonly bytes: number
}

/** What first syncs have read of a room since something was written to it last. */
export interface FirstReading {
  /** What was read: the version of the room, where its history begins, and what the readers wanted of it. */
  readonly version: number
  readonly purgedTo: number
  readonly wish: number
  /** Undefined after the first reader: one alone need not pay for a copy. */
  readonly section: FirstSection | undefined
}

/** By room. */
export type FirstReadings = Pick<BudgetPart<number, FirstReading>, 'get' | 'set'>

/** The rooms of which a sync reads so many of the newest events now: others who begin at the same time wait for that. */
export type TimelineReads = Map<number, { readonly limit: number; readonly done: Promise<void> }>

const READING_BYTES = 160

export function createFirstReadings(budget: ByteBudget): FirstReadings {
  return budget.part({ bytesOf: ({ section }) => READING_BYTES + (section?.bytes ?? 0) })
}
