import type { UserId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'

// Tables: room_member; read: account, matrix_user

/** Whether a user asked for the room to be forgotten after leaving it. */
export async function isForgotten(reader: Reader, userNid: number, roomNid: number): Promise<boolean> {
  const [row] = await reader.query<{ forgotten: boolean }>(
    'SELECT forgotten FROM room_member WHERE user_nid = $1 AND room_nid = $2',
    [userNid, roomNid],
  )
  return row?.forgotten ?? false
}

export interface GuestRow {
  readonly user_nid: number
  readonly user_id: UserId
}

/** The guests who are in a room. */
export function getJoinedGuests(reader: Reader, roomNid: number): Promise<GuestRow[]> {
  return reader.query(
    `SELECT m.user_nid, u.user_id FROM room_member m JOIN account a USING (user_nid) JOIN matrix_user u USING (user_nid)
     WHERE m.room_nid = $1 AND m.membership = 'join' AND a.is_guest ORDER BY m.user_nid`,
    [roomNid],
  )
}

/** The rooms that guests are in. */
export async function getRoomsOfGuests(reader: Reader): Promise<number[]> {
  const rows = await reader.query<{ room_nid: number }>(
    `SELECT DISTINCT m.room_nid FROM account a JOIN room_member m USING (user_nid)
     WHERE a.is_guest AND a.deactivated_at IS NULL AND m.membership = 'join'`,
  )
  return rows.map(({ room_nid }) => room_nid)
}
