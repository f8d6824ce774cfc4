import type { RoomId, UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: room_deletion, room, federation_sent, federation_destination

export type DeletionStatus = 'scheduled' | 'active' | 'complete' | 'failed'

/** How to delete a room. */
export interface DeletionRequest {
  /** The user who creates a new room in which the users are told; undefined for no new room. */
  readonly newRoomUserId: UserId | undefined
  readonly roomName: string
  readonly message: string
  /** Whether everything about the room is removed. */
  readonly purge: boolean
  /** Purge even if some users of this server could not leave. */
  readonly forcePurge: boolean
}

export interface DeletionRow {
  readonly deletion_id: string
  readonly room_id: RoomId
  readonly room_nid: number
  readonly request: DeletionRequest
  readonly status: DeletionStatus
  readonly error: string | null
  readonly new_room_id: RoomId | null
  /** Null until they were counted. */
  readonly members: readonly UserId[] | null
  readonly moved: number
  readonly failed: readonly UserId[]
  readonly removed: number
  readonly aliases: readonly string[]
  readonly asked_at: number
}

interface StoredRow extends Omit<DeletionRow, 'request'> {
  readonly request: string
}

const COLUMNS =
  'deletion_id, room_id, room_nid, request, status, error, new_room_id, members, moved, removed, failed, aliases, asked_at'

const read = (row: StoredRow): DeletionRow => ({ ...row, request: JSON.parse(row.request) as DeletionRequest })

/** False when a deletion of the room is under way. */
export async function insertDeletion(
  tx: Tx,
  deletion: {
    readonly id: string
    readonly roomId: RoomId
    readonly roomNid: number
    readonly request: DeletionRequest
    readonly askedAt: number
  },
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO room_deletion (deletion_id, room_id, room_nid, request, status, asked_at)
     VALUES ($1, $2, $3, $4, 'scheduled', $5)
     ON CONFLICT (room_id) WHERE ended_at IS NULL DO NOTHING RETURNING 1 AS one`,
    [deletion.id, deletion.roomId, deletion.roomNid, JSON.stringify(deletion.request), deletion.askedAt],
  )
  return rows.length === 1
}

export async function findDeletion(reader: Reader, id: string): Promise<DeletionRow | undefined> {
  const [row] = await reader.query<StoredRow>(`SELECT ${COLUMNS} FROM room_deletion WHERE deletion_id = $1`, [id])
  return row && read(row)
}

export async function deletionsOfRoom(reader: Reader, roomId: string): Promise<DeletionRow[]> {
  const rows = await reader.query<StoredRow>(
    `SELECT ${COLUMNS} FROM room_deletion WHERE room_id = $1 ORDER BY asked_at, deletion_id`,
    [roomId],
  )
  return rows.map(read)
}

/** The ids of rooms that are being removed, or were removed lately, by number. */
export async function idsOfRemovedRooms(reader: Reader, roomNids: readonly number[]): Promise<Map<number, RoomId>> {
  const rows = await reader.query<{ room_nid: number; room_id: RoomId }>(
    'SELECT room_nid, room_id FROM room_deletion WHERE room_nid = ANY($1::bigint[])',
    [roomNids],
  )
  return new Map(rows.map(({ room_nid, room_id }) => [room_nid, room_id]))
}

/** The unfinished deletions, oldest first. */
export async function openDeletions(reader: Reader): Promise<DeletionRow[]> {
  const rows = await reader.query<StoredRow>(
    `SELECT ${COLUMNS} FROM room_deletion WHERE ended_at IS NULL ORDER BY asked_at, deletion_id`,
  )
  return rows.map(read)
}

/** Whether all reachable servers have the room's events, so that the events need not be kept for them. */
export async function isDelivered(reader: Reader, roomNid: number): Promise<boolean> {
  const [row] = await reader.query<{ is_delivered: boolean }>(
    `SELECT coalesce(s.position >= r.last_nid, true) AND NOT EXISTS (
       SELECT FROM federation_destination WHERE first_unsent <= r.last_nid AND failures = 0) AS is_delivered
     FROM room r LEFT JOIN federation_sent s ON true WHERE r.room_nid = $1`,
    [roomNid],
  )
  return row?.is_delivered ?? true
}

export async function beginMoving(tx: Tx, id: string, members: readonly UserId[]): Promise<void> {
  await tx.query("UPDATE room_deletion SET status = 'active', members = $2::text[] WHERE deletion_id = $1", [
    id,
    members,
  ])
}

export async function setNewRoom(tx: Tx, id: string, roomId: RoomId): Promise<void> {
  await tx.query('UPDATE room_deletion SET new_room_id = $2 WHERE deletion_id = $1', [id, roomId])
}

export async function noteMoved(tx: Tx, id: string, moved: number, failed: readonly UserId[]): Promise<void> {
  await tx.query('UPDATE room_deletion SET moved = $2, failed = failed || $3::text[] WHERE deletion_id = $1', [
    id,
    moved,
    failed,
  ])
}

export async function noteAliases(tx: Tx, id: string, aliases: readonly string[]): Promise<void> {
  await tx.query('UPDATE room_deletion SET aliases = aliases || $2::text[] WHERE deletion_id = $1', [id, aliases])
}

export async function noteRemoved(tx: Tx, id: string, rows: number): Promise<void> {
  await tx.query('UPDATE room_deletion SET removed = removed + $2 WHERE deletion_id = $1', [id, rows])
}

export async function endDeletion(
  tx: Tx,
  id: string,
  end: { readonly status: DeletionStatus; readonly error: string | undefined; readonly at: number },
): Promise<void> {
  await tx.query('UPDATE room_deletion SET status = $2, error = $3, ended_at = $4 WHERE deletion_id = $1', [
    id,
    end.status,
    end.error ?? null,
    end.at,
  ])
}

/** Forgets some that ended before a time. Gives how many. */
export async function forgetDeletions(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM room_deletion WHERE deletion_id = ANY(ARRAY(
       SELECT deletion_id FROM room_deletion WHERE ended_at < $1 LIMIT $2)) RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}
