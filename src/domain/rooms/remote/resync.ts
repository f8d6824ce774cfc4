import type { Logger } from 'pino'
import { pauseAfter } from '../../backoff.ts'
import type { Random } from '../../clock.ts'
import { Turns } from '../../federation/sending/turns.ts'
import { KICK_LOOKED_AT_AFTER_MS, MAX_RESYNCS_AT_ONCE } from '../../limits.ts'
import type { PartialState } from '../room/partial-state.ts'
import { createResyncFetcher, Refused, type ResyncFetcherParts } from './resync-fetcher.ts'
import { createResyncWriter, type ResyncWriterParts } from './resync-writer.ts'

/** Fetches the members of rooms with partial state, and then has the held events processed. */
export interface Resync {
  begin(partialState: PartialState): void
  /**
   * Says that a held event kicks a user of ours. If the servers of the room refused us their state, that may be why, so they are asked
   * again soon.
   */
  hurry(partialState: PartialState): void
  /** Calls `take` for each room whose state is complete, to process its held events. */
  onWhole(take: (partialState: PartialState) => Promise<void>): void
  /** Continues the resyncs from before a restart. No resync begins earlier. */
  start(): void
  close(): Promise<void>
}

export interface ResyncParts extends ResyncFetcherParts, ResyncWriterParts {
  readonly random: Random
  readonly log: Pick<Logger, 'info' | 'warn'>
}

const RETRIES = { firstMs: 500, longestMs: 3_600_000 }
/** The process is shutting down. */
class Closing extends Error {}

/** The pause before a room is tried again. */
interface Rest {
  readonly timer: NodeJS.Timeout
  /** When the pause began, by the clock of `performance.now()`. */
  readonly since: number
  readonly wasRefused: boolean
}

export function createResync(parts: ResyncParts): Resync {
  const { log, partialStateRooms } = parts
  const turns = new Turns(MAX_RESYNCS_AT_ONCE)
  const rests = new Map<PartialState, Rest>()
  /** Rooms for which `hurry` was called during an attempt. */
  const hurried = new WeakSet<PartialState>()
  const running = new Set<Promise<void>>()
  const takers: ((partialState: PartialState) => Promise<void>)[] = []
  let isStarted = false
  let isClosing = false
  let close: () => void = () => {}
  const closed = new Promise<never>((_, reject) => {
    close = () => reject(new Closing())
  })
  closed.catch(() => {})

  const fetchMembers = createResyncFetcher(parts, createResyncWriter(parts), {
    closed,
    isWanted: (partialState) => partialState.lacksMembers && !isClosing,
  })

  /** One attempt; on failure it schedules the next. */
  async function attempt(partialState: PartialState): Promise<void> {
    try {
      if (partialState.lacksMembers) await fetchMembers(partialState)
      for (const take of takers) if (partialState.holdsEvents && !isClosing) await take(partialState)
    } catch (error) {
      if (isClosing || !partialState.holdsEvents) return
      const reason = error instanceof Error ? error.message : String(error)
      await partialStateRooms.failed(partialState, reason).catch(() => {})
      const pauseMs = pauseAfter(Math.max(partialState.failures, 1), RETRIES, parts.random)
      log.warn(
        { err: error, roomId: partialState.roomId, failures: partialState.failures, pauseMs },
        'the resync of a room failed; it will be tried again',
      )
      rest(partialState, pauseMs, error instanceof Refused)
    }
  }

  function rest(partialState: PartialState, pauseMs: number, wasRefused: boolean): void {
    const isHurried = hurried.delete(partialState) && wasRefused
    const ms = isHurried ? Math.min(pauseMs, KICK_LOOKED_AT_AFTER_MS) : pauseMs
    const timer = setTimeout(begin, ms, partialState).unref()
    rests.set(partialState, { timer, since: performance.now(), wasRefused })
  }

  function hurry(partialState: PartialState): void {
    const resting = rests.get(partialState)
    if (!resting) hurried.add(partialState)
    if (!resting?.wasRefused) return
    clearTimeout(resting.timer)
    const ms = Math.max(resting.since + KICK_LOOKED_AT_AFTER_MS - performance.now(), 0)
    rests.set(partialState, { ...resting, timer: setTimeout(begin, ms, partialState).unref() })
  }

  function begin(partialState: PartialState): void {
    rests.delete(partialState)
    hurried.delete(partialState)
    if (isClosing || !isStarted) return
    turns.add(() => {
      const work = attempt(partialState).finally(() => running.delete(work))
      running.add(work)
      return work
    })
  }

  return {
    begin,
    hurry,
    onWhole: (take) => void takers.push(take),
    start() {
      isStarted = true
      for (const partialState of partialStateRooms.all()) begin(partialState)
    },
    async close() {
      isClosing = true
      close()
      for (const { timer } of rests.values()) clearTimeout(timer)
      await Promise.all(running)
    },
  }
}
