import type { BudgetPart, ByteBudget } from '../../core/byte-budget.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { TimelineSlice } from './room-timeline.ts'

/** How far `age` in shared events can be off. */
export const SHARED_FOR_MS = 250

/** The newest stretch of a room's timeline as sync wrote it last. */
export interface SharedStretch {
  readonly key: string
  readonly madeAt: number
  readonly json: string
}

/** By room, for the many syncs that the same events wake. */
export type SharedStretches = Pick<BudgetPart<number, SharedStretch>, 'get' | 'set'>

const STRETCH_BYTES = 300

export function createSharedStretches(budget: ByteBudget): SharedStretches {
  return budget.part({ bytesOf: ({ json }) => STRETCH_BYTES + 2 * json.length })
}

/** A room's newest events, as first syncs show them to those who were in the room for all of them. */
export interface FirstTimeline {
  readonly slice: TimelineSlice
  /** The list of the events, as JSON. */
  readonly json: Buffer
  /** Those that another client may see with a transaction id or a delay id. */
  readonly marked: readonly RoomEvent[]
  readonly bytes: number
}

/** What first syncs have just read of a room's timeline. */
export interface FirstReading {
  /** Milliseconds. Events have the `age` of this time. */
  readonly madeAt: number
  /** What was read: the head of the room, where its history begins, and how many events the reader wanted at most. */
  readonly headNid: number
  readonly purgedTo: number
  readonly limit: number
  /** Undefined after the first reader: one alone need not pay for a copy. */
  readonly timeline: FirstTimeline | undefined
}

/** By room, for many first syncs at the same time. */
export type FirstReadings = Pick<BudgetPart<number, FirstReading>, 'get' | 'set'>

const READING_BYTES = 100

export function createFirstReadings(budget: ByteBudget): FirstReadings {
  return budget.part({ bytesOf: ({ timeline }) => READING_BYTES + (timeline?.bytes ?? 0) })
}
