import type { ServerName } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: federation_forward

export interface Forward {
  readonly event_nid: number
  readonly from_server: ServerName
}

/** Records an event that must be forwarded to other servers; false if it is recorded already. */
export async function insertForward(tx: Tx, { event_nid, from_server }: Forward, now: number): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO federation_forward (event_nid, from_server, created_at) VALUES ($1, $2, $3)
     ON CONFLICT (event_nid) DO NOTHING RETURNING 1 AS one`,
    [event_nid, from_server, now],
  )
  return rows.length > 0
}

/** The events that are not yet covered by the rows of destinations. */
export function getForwardsDue(reader: Reader): Promise<Forward[]> {
  return reader.query('SELECT event_nid, from_server FROM federation_forward WHERE NOT is_spread ORDER BY event_nid')
}

/** Marks events as covered: the rows of destinations say who lacks them. */
export async function markForwards(tx: Tx, eventNids: readonly number[]): Promise<void> {
  await tx.query('UPDATE federation_forward SET is_spread = true WHERE event_nid = ANY($1::bigint[])', [eventNids])
}

/** Removes those from before a moment, and gives how many. */
export async function forgetForwards(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM federation_forward WHERE event_nid IN (SELECT event_nid FROM federation_forward WHERE created_at < $1 LIMIT $2)
     RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}
