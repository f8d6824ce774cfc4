import type { Reader, Tx } from '../db/db.ts'

// Tables: room_member, receipt, event, highlight; read: room

export interface ReadMark {
  readonly room_nid: number
  /** The number of notifiable events up to the point that the user has read. */
  readonly notifiable: number
  /** The timeline position up to which the user has read. */
  readonly room_pos: number
}

/**
 * How far a user has read in rooms: the latest of their receipts, their own messages, and their join.
 * Rooms that the user was never in are left out.
 */
export function getReadMarks(reader: Reader, userNid: number, roomNids: readonly number[]): Promise<ReadMark[]> {
  return reader.query<ReadMark>(
    `SELECT m.room_nid, mark.notifiable, mark.room_pos
     FROM room_member m
     CROSS JOIN LATERAL (
       SELECT joined.room_pos FROM event joined WHERE joined.event_nid = m.event_nid
     ) joined
     CROSS JOIN LATERAL (
       SELECT max(read.room_pos) AS room_pos FROM receipt r JOIN event read USING (event_nid)
       WHERE r.room_nid = m.room_nid AND r.user_nid = m.user_nid AND r.thread_id IN ('', 'main')
     ) read
     CROSS JOIN LATERAL (
       SELECT e.notifiable, e.room_pos FROM event e
       WHERE e.room_nid = m.room_nid
       AND e.room_pos >= CASE WHEN read.room_pos IS NULL THEN joined.room_pos ELSE read.room_pos END
       AND (e.sender_nid = m.user_nid OR e.room_pos = read.room_pos OR e.room_pos = joined.room_pos)
       ORDER BY e.room_pos DESC LIMIT 1
     ) mark
     WHERE m.user_nid = $1 AND m.room_nid = ANY($2::bigint[])`,
    [userNid, roomNids],
  )
}

export function getHighlights(
  reader: Reader,
  userNid: number,
  roomNids: readonly number[],
): Promise<{ room_nid: number; room_pos: number }[]> {
  return reader.query(
    `SELECT highlight.room_nid, room_pos FROM highlight JOIN event USING (event_nid)
     WHERE user_nid = $1 AND highlight.room_nid = ANY($2::bigint[])`,
    [userNid, roomNids],
  )
}

/** Drops the highlights that a user has read. @param upTo a place in the room's timeline */
export async function clearHighlights(tx: Tx, userNid: number, roomNid: number, upTo: number): Promise<void> {
  await tx.query(
    `DELETE FROM highlight USING event
     WHERE highlight.user_nid = $1 AND highlight.room_nid = $2 AND event.event_nid = highlight.event_nid AND room_pos <= $3`,
    [userNid, roomNid, upTo],
  )
}

/** The rooms' counts of notifiable events. */
export function getNotifiableCounts(
  reader: Reader,
  roomNids: readonly number[],
): Promise<{ readonly room_nid: number; readonly notifiable: number }[]> {
  return reader.query('SELECT room_nid, notifiable FROM room WHERE room_nid = ANY($1::bigint[])', [roomNids])
}
