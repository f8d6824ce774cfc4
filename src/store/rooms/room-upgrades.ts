import type { RoomId, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: room_upgrade

/** A room that replaces another. */
export interface UpgradeRow {
  readonly new_room_nid: number
  readonly new_room_id: RoomId
  /** The room that is replaced. */
  readonly room_nid: number
  readonly room_version: string
  readonly user_id: UserId
  /** The content of the new room's create event, without `predecessor.event_id`. */
  readonly creation: JsonObject
  readonly created_ts: number
  /** The power levels that close the old room. */
  readonly closing_nid: number | null
  readonly is_done: boolean
}

interface StoredRow extends Omit<UpgradeRow, 'creation'> {
  readonly creation: string
}

const COLUMNS = 'new_room_nid, new_room_id, room_nid, room_version, user_id, creation, created_ts, closing_nid, is_done'

const read = (row: StoredRow): UpgradeRow => ({ ...row, creation: JSON.parse(row.creation) as JsonObject })

export async function insertUpgrade(tx: Tx, upgrade: Omit<UpgradeRow, 'closing_nid' | 'is_done'>): Promise<void> {
  await tx.query(
    `INSERT INTO room_upgrade (new_room_nid, new_room_id, room_nid, room_version, user_id, creation, created_ts)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [
      upgrade.new_room_nid,
      upgrade.new_room_id,
      upgrade.room_nid,
      upgrade.room_version,
      upgrade.user_id,
      JSON.stringify(upgrade.creation),
      upgrade.created_ts,
    ],
  )
}

/** The upgrades of a room, newest first. */
export async function upgradesOfRoom(reader: Reader, roomNid: number): Promise<UpgradeRow[]> {
  const rows = await reader.query<StoredRow>(
    `SELECT ${COLUMNS} FROM room_upgrade WHERE room_nid = $1 ORDER BY new_room_nid DESC`,
    [roomNid],
  )
  return rows.map(read)
}

/** Upgrades that are not done yet, oldest first. */
export async function openUpgrades(reader: Reader, limit: number): Promise<UpgradeRow[]> {
  const rows = await reader.query<StoredRow>(
    `SELECT ${COLUMNS} FROM room_upgrade WHERE NOT is_done ORDER BY new_room_nid LIMIT $1`,
    [limit],
  )
  return rows.map(read)
}

export async function noteClosing(tx: Tx, newRoomNid: number, closingNid: number): Promise<void> {
  await tx.query('UPDATE room_upgrade SET closing_nid = $2 WHERE new_room_nid = $1', [newRoomNid, closingNid])
}

export async function endUpgrade(tx: Tx, newRoomNid: number): Promise<void> {
  await tx.query('UPDATE room_upgrade SET is_done = true WHERE new_room_nid = $1', [newRoomNid])
}

export async function deleteUpgrade(tx: Tx, newRoomNid: number): Promise<void> {
  await tx.query('DELETE FROM room_upgrade WHERE new_room_nid = $1', [newRoomNid])
}
