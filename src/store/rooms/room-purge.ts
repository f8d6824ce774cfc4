import type { RoomId } from '../../core/ids.ts'
import type { Tx } from '../db/db.ts'
import { deleteSearchTexts } from '../events/search.ts'

// Tables: room and every other that names a room, but those of blocks and deletions

/** Beside events, their transaction ids and the head. A test finds out from the catalogue whether a table was forgotten. */
export const BY_NID = [
  'event_gap',
  'early_redaction',
  'state_change',
  'state_checkpoint',
  'state_chain',
  'state_key',
  'highlight',
  'thread_event',
  'unread_thread',
  'uncounted_event',
  'unread_event',
  'ignored_event',
  'counted_from',
  'receipt',
  'room_alias',
  'published_room',
  'appservice_room',
  'server_notice_room',
  'room_upgrade',
  'history_purge',
  'room_filling',
  'held_event',
  'held_receipt',
  'room_member',
  'thread_subscription',
  'event_relation',
  'thread',
  'open_room',
  'restored_room',
  'list_ban',
  'list_acl',
  // Without an index of rooms, and short: last, so that it is read once.
  'sticky_event',
] as const

/** Tables that name a room by its id, because they may speak of rooms that this server does not know. */
export const BY_ID = ['account_data', 'delayed_event'] as const

/** Tables that requests write without the persister: a request that began before the deletion may still write there. */
const LATE = [
  'receipt',
  'counted_from',
  'thread_event',
  'unread_thread',
  'uncounted_event',
  'unread_event',
  'room_alias',
  'published_room',
  'server_notice_room',
  'history_purge',
  'thread_subscription',
  'open_room',
] as const

export interface PurgedRoom {
  readonly roomNid: number
  readonly roomId: RoomId
}

/** Removes the head. Every write of events advances the head, so none succeeds from here on. */
export async function deleteHead(tx: Tx, { roomNid }: PurgedRoom): Promise<void> {
  await tx.query('DELETE FROM room WHERE room_nid = $1', [roomNid])
}

/** Removes about `limit` rows of a room whose head is gone, and gives how many; 0 at the end. @param recent older transaction ids are removed already */
export async function purgeSome(tx: Tx, room: PurgedRoom, limit: number, recent: number): Promise<number> {
  const events = await purgeEvents(tx, room, limit, recent)
  if (events > 0) return events
  for (const table of BY_NID) {
    const rows = await tx.query(
      `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM ${table} WHERE room_nid = $1 LIMIT $2)) RETURNING 1 AS one`,
      [room.roomNid, limit],
    )
    if (rows.length > 0) return rows.length
  }
  return purgeById(tx, room)
}

/** Removes again what requests may have written meanwhile. */
export async function sweepLate(tx: Tx, room: PurgedRoom): Promise<void> {
  for (const table of LATE) await tx.query(`DELETE FROM ${table} WHERE room_nid = $1`, [room.roomNid])
  await purgeById(tx, room)
}

async function purgeEvents(tx: Tx, { roomNid }: PurgedRoom, limit: number, recent: number): Promise<number> {
  const rows = await tx.query<{ event_nid: number; is_recent: boolean }>(
    `DELETE FROM event WHERE ctid = ANY(ARRAY(SELECT ctid FROM event WHERE room_nid = $1 LIMIT $2))
     RETURNING event_nid, txn_token IS NOT NULL AND origin_server_ts > $3 AS is_recent`,
    [roomNid, limit, recent],
  )
  await deleteSearchTexts(
    tx,
    rows.map(({ event_nid }) => event_nid),
  )
  const sent = rows.filter(({ is_recent }) => is_recent).map(({ event_nid }) => event_nid)
  if (sent.length > 0) await tx.query('DELETE FROM client_txn WHERE event_nid = ANY($1::bigint[])', [sent])
  return rows.length
}

/** Removes what names the room by its id, and gives how many rows. */
async function purgeById(tx: Tx, { roomId }: PurgedRoom): Promise<number> {
  let removed = 0
  for (const table of BY_ID) {
    removed += (await tx.query(`DELETE FROM ${table} WHERE room_id = $1 RETURNING 1 AS one`, [roomId])).length
  }
  return removed
}
