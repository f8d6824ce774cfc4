import type { BudgetPart, ByteBudget } from '../../../core/byte-budget.ts'
import type { UserId } from '../../../core/ids.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { Written, WrittenEvents } from './written-events.ts'

/** The newest events of a room, written for everybody who was in it for all of them. */
export interface WrittenTimeline {
  readonly events: Written
  readonly limited: boolean
  /** The timeline position before the oldest event. */
  readonly before: number
  /** The lowest stream position of an event that is shown, or bundled with one. */
  readonly oldest: number
  /** The threads that are bundled, by the numbers of their roots. */
  readonly threads: readonly number[]
  /** Who sent the events, each once. */
  readonly senders: readonly UserId[]
  /** Whether none of the events is a state event, and the room's state is that before all of them. */
  readonly isStill: boolean
}

/** The state that a first sync shows with them. */
export interface FirstState {
  /** All of it, and of it the events that everybody is shown. */
  readonly target: StateMap
  readonly events: Written
  /** With members that are loaded lazily: those of the events above that are the senders', by their users. */
  readonly senders: ReadonlyMap<UserId, number>
  /** Whether it is known without looking at its events that the room has a name, or an alias in the place of one. */
  readonly isNamed: boolean
  /** Bytes in memory, without those of the events. */
  readonly bytes: number
}

/** What is written of a room for first syncs of everybody who was in it for all of the timeline. */
export interface FirstWritten {
  readonly timeline: WrittenTimeline
  readonly state: FirstState | undefined
  /** Where they are. */
  readonly reading: FirstReading
}

/** What first syncs, and those that continue after a gap, have read of a room since something was written to it last. */
export interface FirstReading {
  /** What was read: the version of the room, where its history begins, and how many events. */
  readonly version: number
  readonly purgedTo: number
  readonly limit: number
  /** Undefined after the first reader, unless it was written straight from rows: one alone need not pay for a copy. */
  readonly timeline: WrittenTimeline | undefined
  /** What the last first sync wanted of the state, if one was among them, and the same for that. */
  readonly wish: number | undefined
  readonly state: FirstState | undefined
  /** Both, once a reader has been shown both. */
  readonly opening?: Opening | undefined
  /** Whether one has. */
  wasShown?: boolean
}

/** The beginning of a room's section in a first sync, from its key to the state that everybody is shown. The rest is for each reader. */
export interface Opening {
  readonly written: WrittenEvents
  /** The key of the state. */
  readonly stateName: string
  /** Whether the summary is in it: the room has a name of its own, so that nobody's heroes name it. */
  readonly hasSummary: boolean
}

/** By room. */
export type FirstReadings = Pick<BudgetPart<number, FirstReading>, 'get' | 'set'>

/** The rooms of which a sync reads so many of the newest events now: others who begin at the same time wait for that. */
export type TimelineReads = Map<number, { readonly limit: number; readonly done: Promise<void> }>

const READING_BYTES = 400
const NUMBER_BYTES = 8
/** Bytes of the id of a user. */
const ID_BYTES = 80

const bytesBeside = ({ threads, senders }: WrittenTimeline): number =>
  NUMBER_BYTES * threads.length + ID_BYTES * senders.length

export function createFirstReadings(budget: ByteBudget): FirstReadings {
  return budget.part({
    bytesOf({ timeline, state, opening }) {
      const beside = (timeline === undefined ? 0 : bytesBeside(timeline)) + (state?.bytes ?? 0)
      const written = opening?.written.bytes ?? (timeline?.events.bytes ?? 0) + (state?.events.bytes ?? 0)
      return READING_BYTES + beside + written
    },
  })
}
