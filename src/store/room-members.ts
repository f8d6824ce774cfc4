import type { Reader } from './db.ts'

// Table: room_member

/** Whether a user asked for the room to be forgotten after leaving it. */
export async function isForgotten(reader: Reader, userNid: number, roomNid: number): Promise<boolean> {
  const [row] = await reader.query<{ forgotten: boolean }>(
    'SELECT forgotten FROM room_member WHERE user_nid = $1 AND room_nid = $2',
    [userNid, roomNid],
  )
  return row?.forgotten ?? false
}
