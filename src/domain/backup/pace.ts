import { setTimeout as pause } from 'node:timers/promises'
import { createRate } from '../../core/backup/rate.ts'
import {
  BACKUP_FIRST_BYTES_PER_SECOND,
  BACKUP_LEAST_BYTES_PER_SECOND,
  BACKUP_MOST_BYTES_PER_SECOND,
  BACKUP_PROBE_EVERY_MS,
  BACKUP_PROBES_AT_ONCE,
  BACKUP_WORK_MS,
} from '../limits/backups.ts'

/** Holds a backup up as long as others would have to wait for it. */
export interface Pace {
  /** Called before so many bytes are taken; resolves when they may be. */
  take(bytes: number): Promise<void>
  stop(): void
}

/** For a server that is not running: nobody waits. */
export const UNHURRIED: Pace = { take: async () => {}, stop() {} }

/** A process that gives way is often woken late: so much of what it missed it may catch up with. */
const SLACK_MS = 250
/** Timers are no finer. */
const LEAST_PAUSE_MS = 2

/**
 * Measures again and again how long a small request and a small commit take, with the backup and while it rests, and slows the backup down
 * by that.
 *
 * @param probe milliseconds that the others wait at this moment; undefined where that cannot be found out
 */
export function startPace(probe: () => Promise<number | undefined>): Pace {
  const rate = createRate({
    least: BACKUP_LEAST_BYTES_PER_SECOND,
    first: BACKUP_FIRST_BYTES_PER_SECOND,
    most: BACKUP_MOST_BYTES_PER_SECOND,
  })
  const stopping = new AbortController()
  const { signal } = stopping
  let resting: Promise<void> | undefined
  let next = 0

  async function probes(): Promise<number[]> {
    const delays: number[] = []
    for (let count = 0; count < BACKUP_PROBES_AT_ONCE; count++) {
      await pause(BACKUP_PROBE_EVERY_MS, undefined, { signal })
      const delay = await probe()
      if (delay !== undefined) delays.push(delay)
    }
    return delays
  }

  async function measure(): Promise<void> {
    while (!signal.aborted) {
      resting = probes().then((delays) => rate.noteAtRest(delays))
      await resting.finally(() => {
        resting = undefined
      })
      const until = performance.now() + BACKUP_WORK_MS
      while (performance.now() < until) rate.noteAtWork(await probes())
    }
  }

  // What cannot be measured holds nothing up.
  measure().catch(() => {})
  return {
    async take(bytes) {
      while (resting !== undefined) await resting.catch(() => {})
      const now = performance.now()
      next = Math.max(next, now - SLACK_MS) + (bytes / rate.bytesPerSecond) * 1_000
      if (next - now > LEAST_PAUSE_MS) await pause(next - now, undefined, { signal }).catch(() => {})
    },
    stop: () => stopping.abort(),
  }
}

/** The same bytes, at this pace. */
export async function* atPace(pace: Pace, source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    await pace.take(chunk.length)
    yield chunk
  }
}
