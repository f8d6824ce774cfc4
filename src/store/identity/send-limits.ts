import type { Tx } from '../db/db.ts'

// Table: identity_send_limit

/**
 * Takes one from a bucket that holds `size` and regains them evenly within `periodMs`. Gives how long to wait where it is empty, 0
 * where one was taken.
 */
export async function takeFromBucket(
  tx: Tx,
  bucket: { readonly key: Buffer; readonly size: number; readonly periodMs: number },
  now: number,
): Promise<number> {
  const { key, size, periodMs } = bucket
  const each = Math.ceil(periodMs / size)
  const [row] = await tx.query<{ full_at: number }>(
    `INSERT INTO identity_send_limit AS l (key, full_at) VALUES ($1, $2::bigint + $3::bigint)
     ON CONFLICT (key) DO UPDATE SET full_at = GREATEST(l.full_at, $2) + $3 RETURNING full_at`,
    [key, now, each],
  )
  return Math.max(0, (row?.full_at ?? now) - (now + each * size))
}

/** Removes buckets that were full again before this moment. */
export async function forgetFullBuckets(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM identity_send_limit WHERE key IN (
       SELECT key FROM identity_send_limit WHERE full_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING key`,
    [before, atMost],
  )
  return rows.length
}
