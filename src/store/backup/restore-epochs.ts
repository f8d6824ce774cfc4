import type { Reader, Tx } from '../db/db.ts'
import { lastPosition } from '../events/events.ts'

// Tables: restore_epoch, restored_room, restored_user; read: server_name, event; at the end of a restore also written: ledger, one_time_key, fallback_key,
// appservice_queue, device_list, search_position

export interface EpochRow {
  readonly epoch: string
  readonly restored_at: number
  readonly event_position: number
  readonly ledger_position: number
}

/** The restores of this database, in order. */
export function getEpochs(reader: Reader): Promise<EpochRow[]> {
  return reader.query<EpochRow>(
    'SELECT epoch, restored_at, event_position, ledger_position FROM restore_epoch ORDER BY epoch_nid',
  )
}

export interface NewEpoch {
  readonly epoch: string
  readonly now: number
  readonly serverName: string
  /** The newest positions in the backup. */
  readonly eventPosition: number
  readonly ledgerPosition: number
}

/** More than any server writes between a backup and its restore, and a small part of the numbers of a writer. */
const EVENT_GAP = 2 ** 32
/** Ledger positions go to other servers as ids of device lists, so they grow with the time too: a second restore of one backup jumps further. */
const LEDGER_GAP = 2 ** 32
const LEDGER_POSITIONS_PER_MS = 64
const APPSERVICE_GAP = 2 ** 20

type Execute = (text: string, values?: readonly unknown[]) => Promise<unknown>

/**
 * Begins an epoch in a database that was brought back: numbers jump, keys that may have been given out are given out no more, and what
 * other servers and clients must be asked or informed about is written down.
 */
export async function beginEpoch(query: Execute, by: NewEpoch): Promise<void> {
  const { epoch, now, serverName, eventPosition, ledgerPosition } = by
  const ledgerFloor = Math.max(ledgerPosition + LEDGER_GAP, now * LEDGER_POSITIONS_PER_MS)
  await query(
    'INSERT INTO restore_epoch (epoch, restored_at, event_position, ledger_position, event_floor) VALUES ($1, $2, $3, $4, $5)',
    [epoch, now, eventPosition, ledgerPosition, eventPosition + EVENT_GAP],
  )
  await query('UPDATE ledger SET position = $1', [ledgerFloor])
  // As if they were claimed: an upload that is repeated does not bring them back. Clients see that none are left, and upload new ones.
  await query('UPDATE one_time_key SET claimed_at = $1 WHERE claimed_at IS NULL', [now])
  await query('UPDATE fallback_key SET is_used = true')
  // A service passes over ids that it has seen. What was in flight goes again as it was; later ids begin at the time. If the clock went back
  // they would not, and it goes under a new one.
  await query('UPDATE appservice_queue SET failures = 0, retry_at = 0')
  await query(
    `UPDATE appservice_queue SET txn_id = greatest(txn_id + $1, $2), body = NULL, up_to = NULL, news_up_to = NULL
     WHERE body IS NULL OR txn_id >= $2`,
    [APPSERVICE_GAP, now],
  )
  await query('UPDATE search_position SET event_nid = 0')
  await query('DELETE FROM restored_room')
  await query('DELETE FROM restored_user')
  await query(
    `INSERT INTO restored_room (room_nid) SELECT room_nid FROM room_member JOIN matrix_user USING (user_nid)
     WHERE membership = 'join' GROUP BY room_nid
     HAVING bool_or(${SERVER} = $1) AND bool_or(${SERVER} <> $1)`,
    [serverName],
  )
  await query(
    `INSERT INTO restored_user (user_nid) SELECT DISTINCT user_nid FROM device_key JOIN matrix_user USING (user_nid) WHERE ${SERVER} = $1`,
    [serverName],
  )
  // What other servers said of their users' devices meanwhile is lost: clients ask again.
  await query(
    `INSERT INTO device_list (user_nid, position)
     SELECT DISTINCT user_nid, $2::bigint FROM room_member JOIN matrix_user USING (user_nid) WHERE membership = 'join' AND ${SERVER} <> $1
     ON CONFLICT (user_nid) DO UPDATE SET position = excluded.position`,
    [serverName, ledgerFloor],
  )
}

/** How far the streams of a database are, whose it is, and when its newest event is of. */
export async function readPlace(reader: Reader): Promise<{
  readonly name: string | null
  readonly eventPosition: number
  readonly ledgerPosition: number
  readonly last: number | undefined
}> {
  const [facts] = await reader.query<{ name: string | null; ledger: number; last: number | null }>(
    `SELECT (SELECT name FROM server_name) AS name, (SELECT position FROM ledger)::bigint AS ledger,
       (SELECT origin_server_ts FROM event WHERE event_nid > 0 ORDER BY event_nid DESC LIMIT 1)::bigint AS last`,
  )
  const { name, ledger, last } = facts!
  return { name, eventPosition: await lastPosition(reader, 0), ledgerPosition: ledger, last: last ?? undefined }
}

const SERVER = `substr(user_id, strpos(user_id, ':') + 1)`

/** Rooms of which others may have lost events of ours, by number. */
export async function getRestoredRooms(reader: Reader): Promise<number[]> {
  const rows = await reader.query<{ room_nid: number }>('SELECT room_nid FROM restored_room')
  return rows.map(({ room_nid }) => room_nid)
}

/** The next rooms that are due, and when the next one is after them. */
export function dueRestoredRooms(
  reader: Reader,
  now: number,
  atMost: number,
): Promise<{ room_nid: number; attempts: number }[]> {
  return reader.query('SELECT room_nid, attempts FROM restored_room WHERE due_at <= $1 ORDER BY due_at LIMIT $2', [
    now,
    atMost,
  ])
}

export async function isAnyRoomRestored(reader: Reader): Promise<boolean> {
  return (await reader.query('SELECT 1 AS one FROM restored_room LIMIT 1')).length > 0
}

export async function finishRestoredRoom(tx: Tx, roomNid: number): Promise<void> {
  await tx.query('DELETE FROM restored_room WHERE room_nid = $1', [roomNid])
}

export async function postponeRestoredRoom(tx: Tx, roomNid: number, dueAt: number): Promise<void> {
  await tx.query('UPDATE restored_room SET attempts = attempts + 1, due_at = $2 WHERE room_nid = $1', [roomNid, dueAt])
}

export async function getRestoredUsers(reader: Reader, atMost: number): Promise<number[]> {
  const rows = await reader.query<{ user_nid: number }>('SELECT user_nid FROM restored_user LIMIT $1', [atMost])
  return rows.map(({ user_nid }) => user_nid)
}

export async function finishRestoredUser(tx: Tx, userNid: number): Promise<void> {
  await tx.query('DELETE FROM restored_user WHERE user_nid = $1', [userNid])
}
