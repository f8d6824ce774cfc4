import type { Reader, Tx } from '../db/db.ts'

// Tables: history_purge, room; read: event

export interface PurgeRow {
  readonly purge_id: string
  readonly room_nid: number
  /** Events up to this position of the timeline go, and events outside the timeline below this number. */
  readonly up_to_pos: number
  readonly up_to_nid: number
  /** Whether events of users of this server go too. */
  readonly with_local: boolean
  readonly done_pos: number | null
  readonly removed: number
  readonly error: string | null
  readonly asked_at: number
  readonly ended_at: number | null
  /** It is a matter of age: nobody asked for it. */
  readonly is_by_age: boolean
}

const COLUMNS =
  'purge_id, room_nid, up_to_pos, up_to_nid, with_local, done_pos, removed, error, asked_at, ended_at, is_by_age'

/** Notes a purge, and that the room's history begins after it. False when one of the room is under way. */
export async function insertPurge(
  tx: Tx,
  purge: Omit<PurgeRow, 'done_pos' | 'removed' | 'error' | 'ended_at'>,
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO history_purge (purge_id, room_nid, up_to_pos, up_to_nid, with_local, asked_at, is_by_age) VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (room_nid) WHERE ended_at IS NULL DO NOTHING RETURNING 1 AS one`,
    [
      purge.purge_id,
      purge.room_nid,
      purge.up_to_pos,
      purge.up_to_nid,
      purge.with_local,
      purge.asked_at,
      purge.is_by_age,
    ],
  )
  if (rows.length === 0) return false
  await tx.query(
    `UPDATE room SET purged_to = $2, purged_notifiable =
       (SELECT notifiable FROM event WHERE room_nid = $1 AND room_pos <= $2 ORDER BY room_pos DESC LIMIT 1)
     WHERE room_nid = $1 AND (purged_to IS NULL OR purged_to < $2)`,
    [purge.room_nid, purge.up_to_pos],
  )
  return true
}

export async function findPurge(reader: Reader, id: string): Promise<PurgeRow | undefined> {
  const [row] = await reader.query<PurgeRow>(`SELECT ${COLUMNS} FROM history_purge WHERE purge_id = $1`, [id])
  return row
}

/** Purges that have not ended: first those that operators asked for, the oldest first. */
export function openPurges(reader: Reader): Promise<PurgeRow[]> {
  return reader.query<PurgeRow>(
    `SELECT ${COLUMNS} FROM history_purge WHERE ended_at IS NULL ORDER BY is_by_age, asked_at, purge_id`,
  )
}

export async function notePurged(
  tx: Tx,
  id: string,
  { donePos, removed }: { readonly donePos: number | null; readonly removed: number },
): Promise<void> {
  await tx.query(
    'UPDATE history_purge SET done_pos = coalesce($2, done_pos), removed = removed + $3 WHERE purge_id = $1',
    [id, donePos, removed],
  )
}

export async function endPurge(tx: Tx, id: string, at: number, error: string | undefined): Promise<void> {
  await tx.query('UPDATE history_purge SET ended_at = $2, error = $3 WHERE purge_id = $1', [id, at, error ?? null])
}

export async function deletePurge(tx: Tx, id: string): Promise<void> {
  await tx.query('DELETE FROM history_purge WHERE purge_id = $1', [id])
}

/** Forgets some that ended before a time. Gives how many. */
export async function forgetPurges(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM history_purge WHERE purge_id = ANY(ARRAY(
       SELECT purge_id FROM history_purge WHERE ended_at < $1 LIMIT $2)) RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}
