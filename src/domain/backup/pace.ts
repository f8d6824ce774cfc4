import { setTimeout as pause } from 'node:timers/promises'
import {
  BACKUP_BYTES_PER_SECOND,
  BACKUP_LOOK_EVERY_MS,
  BACKUP_PIECE_BYTES,
  BACKUP_QUIET_TRANSACTIONS_PER_SECOND,
} from '../limits/backups.ts'
import { NODE_LOOK_MS } from '../limits/cluster.ts'
import { inPieces } from './chunks.ts'

/** Holds a backup up, so that others do not wait for it. */
export interface Pace {
  /** Called before so many bytes are taken; resolves when they may be. */
  take(bytes: number): Promise<void>
  /** Resolves when nothing of it is under way any more. */
  stop(): Promise<void>
}

/** What the database has seen. */
export interface Activity {
  /** How many transactions have ended. */
  readonly ended: number
  /** How many nodes stand by. Each ends transactions all the time, to see who serves: nobody waits for those. */
  readonly standingBy: number
}

/** For a server that is not running: nobody waits. */
export const UNHURRIED: Pace = { take: async () => {}, stop: async () => {} }

/** A process that gives way is often woken late: so much of what it missed it may catch up with. */
const SLACK_MS = 20
const LOOKS_PER_SECOND = 1_000 / NODE_LOOK_MS
/** Timers are no finer. */
const LEAST_PAUSE_MS = 1

/**
 * Takes small pieces with pauses between them while others work, and all at once while nobody does.
 *
 * @param look what the database has seen. While that cannot be asked, others may be at work.
 */
export function startPace(look: () => Promise<Activity>): Pace {
  const stopping = new AbortController()
  const { signal } = stopping
  let isQuiet = false
  let next = 0

  /** No number while it cannot be asked, and so no rate that is quiet. */
  const count = () => look().catch((): Activity => ({ ended: Number.NaN, standingBy: 0 }))

  async function follow(): Promise<void> {
    let [before, at] = [await count(), performance.now()]
    while (!signal.aborted) {
      await pause(BACKUP_LOOK_EVERY_MS, undefined, { signal })
      const [after, now] = [await count(), performance.now()]
      const perSecond = ((after.ended - before.ended) / (now - at)) * 1_000
      isQuiet = perSecond - after.standingBy * LOOKS_PER_SECOND <= BACKUP_QUIET_TRANSACTIONS_PER_SECOND
      before = after
      at = now
    }
  }

  const following = follow().catch(() => {
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
      await following
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
