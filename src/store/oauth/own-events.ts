import type { Reader } from '../db/db.ts'

// Tables: event, room, room_member, account

/** The rooms that a user is in or was in. */
export function roomsOf(
  reader: Reader,
  userNid: number,
): Promise<{ readonly room_nid: number; readonly room_id: string; readonly membership: string }[]> {
  return reader.query(
    `SELECT r.room_nid, r.room_id, m.membership FROM room_member m JOIN room r USING (room_nid)
     WHERE m.user_nid = $1 ORDER BY r.room_nid`,
    [userNid],
  )
}

/** The first of these rooms with at least a number; undefined after the last. */
export async function roomFrom(reader: Reader, userNid: number, from: number): Promise<number | undefined> {
  const [row] = await reader.query<{ room_nid: number }>(
    'SELECT room_nid FROM room_member WHERE user_nid = $1 AND room_nid >= $2 ORDER BY room_nid LIMIT 1',
    [userNid, from],
  )
  return row?.room_nid
}

/**
 * The events that a user sent among so many of a room, from a position on, and the last position that was looked at; none at the end. It
 * stops after the event that exceeds so many bytes.
 */
export async function ownEventsFrom(
  reader: Reader,
  { roomNid, userNid, after, atMost, bytes }: Record<'roomNid' | 'userNid' | 'after' | 'atMost' | 'bytes', number>,
): Promise<{ readonly last: number | null; readonly events: readonly string[] }> {
  const [row] = await reader.query<{ last: number | null; events: string[] | null }>(
    `WITH part AS (
       SELECT room_pos, CASE WHEN sender_nid = $2 THEN json END AS own FROM event
       WHERE room_nid = $1 AND room_pos > $3 ORDER BY room_pos LIMIT $4
     ), measured AS (
       SELECT room_pos, own, sum(octet_length(own)) OVER (ORDER BY room_pos ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
       FROM part
     )
     SELECT max(room_pos) AS last, array_agg(own ORDER BY room_pos) FILTER (WHERE own IS NOT NULL) AS events
     FROM measured WHERE coalesce(before, 0) < $5`,
    [roomNid, userNid, after, atMost, bytes],
  )
  return { last: row?.last ?? null, events: row?.events ?? [] }
}

/** When an account was made. */
export async function accountCreatedAt(reader: Reader, userNid: number): Promise<number | undefined> {
  const [row] = await reader.query<{ created_at: number }>('SELECT created_at FROM account WHERE user_nid = $1', [
    userNid,
  ])
  return row?.created_at
}
