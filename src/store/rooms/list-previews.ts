import type { RoomId, UserId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'

// Tables read: account, matrix_user, room

export interface Numbered<Id> {
  readonly nid: number
  readonly id: Id
}

/** Accounts of this server whom lists concern: a page in the order of their numbers, without administrators and those that are over. */
export function accountsAfter(reader: Reader, after: number, atMost: number): Promise<Numbered<UserId>[]> {
  return reader.query<Numbered<UserId>>(
    `SELECT user_nid AS nid, user_id AS id FROM account JOIN matrix_user USING (user_nid)
     WHERE user_nid > $1 AND NOT is_admin AND deactivated_at IS NULL ORDER BY user_nid LIMIT $2`,
    [after, atMost],
  )
}

/** The rooms that this server knows: a page in the order of their numbers. */
export function roomsAfter(reader: Reader, after: number, atMost: number): Promise<Numbered<RoomId>[]> {
  return reader.query<Numbered<RoomId>>(
    'SELECT room_nid AS nid, room_id AS id FROM room WHERE room_nid > $1 ORDER BY room_nid LIMIT $2',
    [after, atMost],
  )
}
