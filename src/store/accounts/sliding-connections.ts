import type { Reader, Tx } from '../db/db.ts'

// Tables: sliding_connection

export interface ConnectionKey {
  readonly userNid: number
  readonly deviceId: string
  readonly connId: string
}

/** What a connection was sent up to its newest answer, and up to the one before. */
export interface ConnectionRow {
  readonly version: number
  readonly record: string
  readonly base_version: number | null
  readonly base_record: string | null
  readonly used_at: number
}

export async function findConnection(reader: Reader, key: ConnectionKey): Promise<ConnectionRow | undefined> {
  const [row] = await reader.query<ConnectionRow>(
    `SELECT version, record, base_version, base_record, used_at FROM sliding_connection
     WHERE user_nid = $1 AND device_id = $2 AND conn_id = $3`,
    [key.userNid, key.deviceId, key.connId],
  )
  return row
}

/**
 * Writes the record of a new answer. The record that it follows stays beside it. Returns the names of the connections that had to go.
 *
 * @param base the version of that record; 0 for none
 * @param most connections of the device that stay
 */
export async function putConnection(
  tx: Tx,
  { userNid, deviceId, connId }: ConnectionKey,
  answer: {
    readonly base: number
    readonly version: number
    readonly record: string
    readonly usedAt: number
    readonly most: number
  },
): Promise<readonly string[]> {
  // The rows that are there do not count the new one.
  const gone = await tx.query<{ conn_id: string }>(
    `WITH put AS (
       INSERT INTO sliding_connection AS c (user_nid, device_id, conn_id, version, record, used_at) VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (user_nid, device_id, conn_id) DO UPDATE SET version = $4, record = $5, used_at = $6,
         base_version = nullif($7::bigint, 0),
         base_record = CASE $7 WHEN 0 THEN NULL WHEN c.version THEN c.record ELSE c.base_record END
       RETURNING xmax = 0 AS is_new)
     DELETE FROM sliding_connection WHERE (SELECT is_new FROM put) AND user_nid = $1 AND device_id = $2 AND conn_id IN (
       SELECT conn_id FROM sliding_connection WHERE user_nid = $1 AND device_id = $2 AND conn_id <> $3
       ORDER BY used_at DESC OFFSET $8::int - 1)
     RETURNING conn_id`,
    [userNid, deviceId, connId, answer.version, answer.record, answer.usedAt, answer.base, answer.most],
  )
  return gone.map(({ conn_id }) => conn_id)
}

/** Notes that a connection is in use. */
export async function touchConnection(tx: Tx, key: ConnectionKey, now: number): Promise<void> {
  await tx.query('UPDATE sliding_connection SET used_at = $4 WHERE user_nid = $1 AND device_id = $2 AND conn_id = $3', [
    key.userNid,
    key.deviceId,
    key.connId,
    now,
  ])
}

/** Removes some connections that nobody used since a time, and returns them. */
export async function deleteUnusedConnections(tx: Tx, before: number, most: number): Promise<readonly ConnectionKey[]> {
  const rows = await tx.query<{ user_nid: number; device_id: string; conn_id: string }>(
    `DELETE FROM sliding_connection WHERE (user_nid, device_id, conn_id) IN (
       SELECT user_nid, device_id, conn_id FROM sliding_connection WHERE used_at < $1 ORDER BY used_at LIMIT $2)
     RETURNING user_nid, device_id, conn_id`,
    [before, most],
  )
  return rows.map(({ user_nid, device_id, conn_id }) => ({ userNid: user_nid, deviceId: device_id, connId: conn_id }))
}
