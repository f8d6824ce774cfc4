import type { Database, Reader, Tx } from '../store/db/db.ts'
import type { Clock } from './clock.ts'

/** Rows of one kind that anybody may begin. */
export interface BegunRows {
  readonly most: number
  /** Counts no further than `atMost`. */
  count(reader: Reader, atMost: number): Promise<number>
  /** Removes all but so many of the newest. */
  deleteOldest(tx: Tx, kept: number): Promise<void>
}

/** Counting is costly, so the cap is not exact. */
const COUNTED_EVERY_MS = 5_000
const KEPT_OF_TOO_MANY = 0.9

/**
 * Makes the function to call before each new row, outside a transaction. If there are too many rows, the oldest give way: whoever begins
 * very many cannot keep others out.
 */
export function oldestGiveWay(
  { db, clock }: { readonly db: Database; readonly clock: Clock },
  { most, count, deleteOldest }: BegunRows,
): () => Promise<void> {
  let countedAt = Number.NEGATIVE_INFINITY
  return async () => {
    const now = clock.now()
    if (now - countedAt < COUNTED_EVERY_MS) return
    countedAt = now
    if ((await count(db, most)) < most) return
    await db.tx((tx) => deleteOldest(tx, Math.floor(most * KEPT_OF_TOO_MANY)))
  }
}
