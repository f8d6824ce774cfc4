import type { EventId, RoomId, UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: list_ban; read: room, room_member, matrix_user

export interface Present {
  readonly room_nid: number
  readonly room_id: RoomId
  readonly user_nid: number
  readonly user_id: UserId
}

/** Those who are in the rooms of a user, invited, or ask to be let in: a page in order of rooms and users, after a place in it. */
export function presentWith(
  reader: Reader,
  userNid: number,
  after: Pick<Present, 'room_nid' | 'user_nid'>,
  atMost: number,
): Promise<Present[]> {
  return reader.query<Present>(
    `SELECT m.room_nid, r.room_id, m.user_nid, u.user_id
     FROM room_member mine JOIN room_member m USING (room_nid) JOIN room r USING (room_nid) JOIN matrix_user u ON u.user_nid = m.user_nid
     WHERE mine.user_nid = $1 AND mine.membership = 'join' AND m.membership IN ('join', 'invite', 'knock')
       AND (m.room_nid, m.user_nid) > ($2, $3)
     ORDER BY m.room_nid, m.user_nid LIMIT $4`,
    [userNid, after.room_nid, after.user_nid, atMost],
  )
}

/** A ban because of a list. */
export interface ListBan extends Present {
  /** The ban itself; null for those of earlier releases, and while a ban is under way. */
  readonly event_id: EventId | null
}

/** Bans because of lists: a page in order of rooms and users, after a place in it. */
export function listBansAfter(
  reader: Reader,
  after: Pick<Present, 'room_nid' | 'user_nid'>,
  atMost: number,
): Promise<ListBan[]> {
  return reader.query<ListBan>(
    `SELECT b.room_nid, r.room_id, b.user_nid, u.user_id, b.event_id
     FROM list_ban b JOIN room r USING (room_nid) JOIN matrix_user u USING (user_nid)
     WHERE (b.room_nid, b.user_nid) > ($1, $2) ORDER BY b.room_nid, b.user_nid LIMIT $3`,
    [after.room_nid, after.user_nid, atMost],
  )
}

export async function countListBans(reader: Reader, since: number): Promise<number> {
  const [row] = await reader.query<{ count: number }>('SELECT count(*) AS count FROM list_ban WHERE at >= $1', [since])
  return row?.count ?? 0
}

export async function insertListBan(
  tx: Tx,
  { room_nid, user_nid }: Pick<Present, 'room_nid' | 'user_nid'>,
  at: number,
): Promise<void> {
  await tx.query(
    `INSERT INTO list_ban (room_nid, user_nid, at) VALUES ($1, $2, $3)
     ON CONFLICT (room_nid, user_nid) DO UPDATE SET at = excluded.at, event_id = NULL`,
    [room_nid, user_nid, at],
  )
}

/** Says which event the ban is. */
export async function setListBanEvent(
  tx: Tx,
  { room_nid, user_nid }: Pick<Present, 'room_nid' | 'user_nid'>,
  eventId: EventId,
): Promise<void> {
  await tx.query('UPDATE list_ban SET event_id = $3 WHERE room_nid = $1 AND user_nid = $2', [
    room_nid,
    user_nid,
    eventId,
  ])
}

export async function deleteListBan(
  tx: Tx,
  { room_nid, user_nid }: Pick<Present, 'room_nid' | 'user_nid'>,
): Promise<void> {
  await tx.query('DELETE FROM list_ban WHERE room_nid = $1 AND user_nid = $2', [room_nid, user_nid])
}
