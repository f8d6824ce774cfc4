import type { Reader, Tx } from '../db/db.ts'

// Table: identity_lookup_quota

/**
 * Adds look-ups to a user's day, unless they would exceed the quota. Gives the start of the day if they would.
 *
 * A single statement, and so a transaction of its own on whatever connection.
 */
export async function spendLookups(
  writer: Reader,
  spent: { readonly who: string; readonly count: number; readonly now: number; readonly dayMs: number },
  quota: number,
): Promise<number | undefined> {
  const { who, count, now, dayMs } = spent
  if (count > quota) return now
  const rows = await writer.query(
    `INSERT INTO identity_lookup_quota AS q (who, since, used) VALUES ($1, $2, $3)
     ON CONFLICT (who) DO UPDATE SET
       since = CASE WHEN q.since <= $2 - $4 THEN $2 ELSE q.since END,
       used = CASE WHEN q.since <= $2 - $4 THEN $3 ELSE q.used + $3 END
     WHERE q.since <= $2 - $4 OR q.used + $3 <= $5
     RETURNING 1 AS one`,
    [who, now, count, dayMs, quota],
  )
  if (rows.length > 0) return undefined
  const [row] = await writer.query<{ since: number }>('SELECT since FROM identity_lookup_quota WHERE who = $1', [who])
  return row?.since ?? now
}

/** Removes days that began before a moment. Gives how many. */
export async function forgetLookups(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM identity_lookup_quota WHERE who = ANY(ARRAY(
       SELECT who FROM identity_lookup_quota WHERE since <= $1 LIMIT $2)) RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}

export async function deleteLookupsOf(tx: Tx, who: string): Promise<void> {
  await tx.query('DELETE FROM identity_lookup_quota WHERE who = $1', [who])
}
