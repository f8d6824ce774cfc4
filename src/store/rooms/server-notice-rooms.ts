import type { Reader, Tx } from '../db/db.ts'

// Table: server_notice_room

/** The room in which a user gets notices; undefined before the first. */
export async function findNoticeRoom(reader: Reader, userNid: number): Promise<number | undefined> {
  const [row] = await reader.query<{ room_nid: number }>(
    'SELECT room_nid FROM server_notice_room WHERE user_nid = $1',
    [userNid],
  )
  return row?.room_nid
}

export async function setNoticeRoom(tx: Tx, userNid: number, roomNid: number): Promise<void> {
  await tx.query(
    `INSERT INTO server_notice_room (user_nid, room_nid) VALUES ($1, $2)
     ON CONFLICT (user_nid) DO UPDATE SET room_nid = EXCLUDED.room_nid`,
    [userNid, roomNid],
  )
}
