import { setTimeout as pause } from 'node:timers/promises'
import {
  BACKUP_BYTES_PER_SECOND,
  BACKUP_LOOK_EVERY_MS,
  BACKUP_PIECE_BYTES,
  BACKUP_QUIET_TRANSACTIONS_PER_SECOND,
} from '../limits/backups.ts'
import { inPieces } from './chunks.ts'

/** Holds a backup up, so that others do not wait for it. */
export interface Pace {
  /** Called before so many bytes are taken; resolves when they may be. */
  take(bytes: number): Promise<void>
  /** Resolves when nothing of it is under way any more. */
  stop(): Promise<void>
}

/** For a server that is not running: nobody waits. */
export const UNHURRIED: Pace = { take: async () => {}, stop: async () => {} }

/** A process that gives way is often woken late: so much of what it missed it may catch up with. */
const SLACK_MS = 20
/** Timers are no finer. */
const LEAST_PAUSE_MS = 1

/**
 * Takes small pieces with pauses between them while others work, and all at once while nobody does.
 *
 * @param countTransactions how many transactions the database has seen. While that cannot be asked, others may be at work.
 */
export function startPace(countTransactions: () => Promise<number>): Pace {
  const stopping = new AbortController()
  const { signal } = stopping
  let isQuiet = false
  let next = 0

  /** No number while it cannot be asked, and so no rate that is quiet. */
  const count = () => countTransactions().catch(() => Number.NaN)

  async function look(): Promise<void> {
    let [before, at] = [await count(), performance.now()]
    while (!signal.aborted) {
      await pause(BACKUP_LOOK_EVERY_MS, undefined, { signal })
      const [after, now] = [await count(), performance.now()]
      isQuiet = ((after - before) / (now - at)) * 1_000 <= BACKUP_QUIET_TRANSACTIONS_PER_SECOND
      before = after
      at = now
    }
  }

  const looking = look().catch(() => {
    isQuiet = false
  })
  return {
    async take(bytes) {
      if (isQuiet) return
      const now = performance.now()
      next = Math.max(next, now - SLACK_MS) + (bytes / BACKUP_BYTES_PER_SECOND) * 1_000
      if (next - now > LEAST_PAUSE_MS) await pause(next - now, undefined, { signal }).catch(() => {})
    },
    async stop() {
      stopping.abort()
      await looking
    },
  }
}

/** The same bytes at this pace, in pieces. */
export async function* atPace(pace: Pace, source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const piece of inPieces(source, BACKUP_PIECE_BYTES)) {
    await pace.take(piece.length)
    yield piece
  }
}
