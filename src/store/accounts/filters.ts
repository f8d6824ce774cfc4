import type { Reader, Tx } from '../db/db.ts'

// Table: sync_filter

export async function findFilter(reader: Reader, userNid: number, filterNid: number): Promise<string | undefined> {
  const [row] = await reader.query<{ definition: string }>(
    'SELECT definition FROM sync_filter WHERE user_nid = $1 AND filter_nid = $2',
    [userNid, filterNid],
  )
  return row?.definition
}

export async function findFilterByDigest(reader: Reader, userNid: number, digest: Buffer): Promise<number | undefined> {
  const [row] = await reader.query<{ filter_nid: number }>(
    'SELECT filter_nid FROM sync_filter WHERE user_nid = $1 AND digest = $2',
    [userNid, digest],
  )
  return row?.filter_nid
}

/** Stores a definition, or finds it where another request has just stored it. */
export async function insertFilter(tx: Tx, userNid: number, digest: Buffer, definition: string): Promise<number> {
  const [row] = await tx.query<{ filter_nid: number }>(
    `INSERT INTO sync_filter (user_nid, digest, definition) VALUES ($1, $2, $3)
     ON CONFLICT (user_nid, digest) DO UPDATE SET digest = EXCLUDED.digest RETURNING filter_nid`,
    [userNid, digest, definition],
  )
  return (row as { filter_nid: number }).filter_nid
}

/** Removes a user's oldest filters, so that at most `keep` stay. */
export async function trimFilters(tx: Tx, userNid: number, keep: number): Promise<void> {
  await tx.query(
    `DELETE FROM sync_filter WHERE user_nid = $1 AND filter_nid <= (
       SELECT filter_nid FROM sync_filter WHERE user_nid = $1 ORDER BY filter_nid DESC OFFSET $2 LIMIT 1)`,
    [userNid, keep],
  )
}
