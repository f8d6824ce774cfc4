import type { RoomId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: counted_from, unread_event; read: room, room_member, receipt, event, thread_event, unread_thread, uncounted_event, ignored_sender,
// matrix_user

const JOINED =
  'CROSS JOIN LATERAL (SELECT joined.room_pos FROM event joined WHERE joined.event_nid = m.event_nid) joined'

const READ = `CROSS JOIN LATERAL (
  SELECT max(read.room_pos) AS room_pos, max(read.room_pos) FILTER (WHERE r.thread_id = '') AS whole
  FROM receipt r JOIN event read USING (event_nid)
  WHERE r.room_nid = m.room_nid AND r.user_nid = m.user_nid AND r.thread_id IN ('', 'main')) read`

/**
 * The latest of the user's receipts, their own events outside of threads, and their join. It is written as a range, which is read backwards
 * and no further than to that event: with an equality the planner, which does not know how near it is, might read all events since the join.
 */
const MAIN = `CROSS JOIN LATERAL (
  SELECT e.notifiable, e.room_pos FROM event e
  WHERE (e.room_nid, e.room_pos) <= (m.room_nid, room.last_pos)
  AND (e.room_nid, e.room_pos) >= (m.room_nid, CASE WHEN read.room_pos IS NULL THEN joined.room_pos ELSE read.room_pos END)
  AND (e.room_pos = read.room_pos OR e.room_pos = joined.room_pos OR e.sender_nid = m.user_nid
    AND NOT EXISTS (SELECT FROM thread_event own WHERE own.room_nid = e.room_nid AND own.room_pos = e.room_pos OFFSET 0))
  ORDER BY e.room_nid DESC, e.room_pos DESC LIMIT 1) main`

/** From where events count at the earliest: where they began to count for the user, or after history that was removed. */
const BEGIN = `LEFT JOIN counted_from f ON f.user_nid = m.user_nid AND f.room_nid = m.room_nid
  LEFT JOIN LATERAL (
    SELECT room_pos, notifiable FROM (VALUES (f.room_pos, f.notifiable), (room.purged_to, room.purged_notifiable)) places (room_pos, notifiable)
    WHERE notifiable IS NOT NULL ORDER BY room_pos DESC LIMIT 1) begun ON true`

/** What is unread for a user in the main timeline of a room, or in one of its threads. */
export interface UnreadRow {
  readonly room_nid: number
  readonly room_id: RoomId
  /** '' for the main timeline. */
  readonly root_id: string
  /** The room's newest timeline position when this was read. */
  readonly up_to: number
  /** The timeline position up to which the user has read, and the one from which events count. */
  readonly from_pos: number
  readonly base_pos: number
  /** Main timeline: the room's count of notifiable events at `base_pos`. */
  readonly notifiable: number
  /** Main timeline: how many of those after `base_pos` were redacted. Thread: how many count after it. And the last of them. */
  readonly tally: number
  readonly last_pos: number
  /** Of the events after `from_pos` that are kept for the user alone, or whose sender the user ignores: how many, and the last. */
  readonly own: number
  readonly own_last: number
  readonly own_notifies: number
  /** How many of them count for all, after `base_pos`. */
  readonly own_counts: number
  readonly own_highlights: number
}

/** The users whom a user ignores, or ignored: in the list that is given, or noted. */
const EVER_IGNORED = `SELECT u.user_nid FROM matrix_user u WHERE u.user_id IN (
  SELECT unnest($4::text[]) UNION ALL SELECT sender_id FROM ignored_sender WHERE user_nid = $1)`

/** Whether the user ignores anybody, or did. It is read once, and nothing is looked at if not. */
const IGNORES = '(SELECT cardinality($4::text[]) > 0 OR EXISTS (SELECT FROM ignored_sender WHERE user_nid = $1))'

/**
 * Whether the user ignored the sender of the event `e` when it came, and nothing else is kept of it for them. Of senders of a list from
 * before that was noted only the list is known. What is read once is read first; the rest is by keys.
 */
const IS_FROM_IGNORED = `(e.sender_nid IN (${EVER_IGNORED})) IS TRUE
  AND NOT EXISTS (SELECT FROM unread_event k WHERE k.user_nid = $1 AND k.room_nid = e.room_nid AND k.room_pos = e.room_pos OFFSET 0)
  AND (SELECT coalesce(
      (SELECT coalesce(s.until_nid >= e.event_nid, true) FROM ignored_sender s
       WHERE s.user_nid = $1 AND s.sender_id = u.user_id AND s.since_nid < e.event_nid ORDER BY s.since_nid DESC LIMIT 1), false)
    OR (u.user_id IN (SELECT unnest($4::text[])) AND NOT EXISTS (
      SELECT FROM ignored_sender s WHERE s.user_nid = $1 AND s.sender_id = u.user_id AND s.until_nid IS NULL OFFSET 0))
    FROM matrix_user u WHERE u.user_nid = e.sender_nid)`

/**
 * Events whose sender the user ignored when they came: they count for all, and for the user they do not. Nothing is written of them. In the
 * main timeline an event counts where the room's count is one higher than at the event before it, which may be gone; those that MAIN looked
 * through are looked at once more, the newest of them.
 */
const IGNORED_EVENTS = `SELECT e.room_pos, 0, 0, 1 FROM (
           SELECT room_nid, room_pos, event_nid, stream_pos, sender_nid, notifiable FROM event
           WHERE place.root_id = '' AND ${IGNORES} AND room_nid = place.room_nid AND room_pos > place.base_pos
           ORDER BY room_pos DESC LIMIT $5) e
         WHERE (e.stream_pos IS NULL OR e.stream_pos > 0) AND ${IS_FROM_IGNORED}
           AND e.notifiable > greatest(place.notifiable, (SELECT b.notifiable FROM event b WHERE b.room_nid = e.room_nid AND b.room_pos < e.room_pos
             AND (b.stream_pos IS NULL OR b.stream_pos > 0) ORDER BY b.room_pos DESC LIMIT 1))
           AND NOT EXISTS (SELECT FROM uncounted_event u WHERE u.room_nid = e.room_nid AND u.room_pos = e.room_pos OFFSET 0)
         UNION ALL
         SELECT e.room_pos, 0, 0, 1 FROM (
           SELECT room_nid, room_pos FROM thread_event
           WHERE place.root_id <> '' AND ${IGNORES} AND room_nid = place.room_nid AND root_id = place.root_id AND room_pos > place.base_pos
             AND counts = 1 ORDER BY room_pos DESC LIMIT $5) t JOIN event e USING (room_nid, room_pos)
         WHERE ${IS_FROM_IGNORED}`

/**
 * What is unread for a user in rooms, in the main timeline and in those threads that are not read. Rooms that the user was never in are
 * left out. One statement, so that all of it is of one moment.
 *
 * @param most of each room: how many threads, the newest, and in how many unread events of each timeline ignored senders are looked for
 * @param ignored the ids of the users whom the user ignores
 */
export function getUnread(
  reader: Reader,
  userNid: number,
  roomNids: readonly number[],
  most: { readonly threads: number; readonly lookedAt: number },
  ignored: readonly string[],
): Promise<UnreadRow[]> {
  return reader.query<UnreadRow>(
    `WITH mark AS (
       SELECT m.room_nid, room.room_id, room.last_pos AS up_to, main.room_pos AS read_pos, greatest(joined.room_pos, read.whole) AS floor,
         begun.room_pos AS counted_from, CASE WHEN begun.room_pos > main.room_pos THEN begun.notifiable ELSE main.notifiable END AS notifiable
       FROM room_member m JOIN room ON room.room_nid = m.room_nid ${JOINED} ${READ} ${MAIN} ${BEGIN}
       WHERE m.user_nid = $1 AND m.room_nid = ANY($2::bigint[])
     ), place AS (
       SELECT mark.*, root_id, from_pos, greatest(from_pos, counted_from) AS base_pos FROM mark CROSS JOIN LATERAL (
         SELECT '' AS root_id, read_pos AS from_pos
         UNION ALL
         SELECT t.root_id, greatest(read.room_pos, own.room_pos) FROM (
           (SELECT root_id FROM unread_thread WHERE room_nid = mark.room_nid AND last_pos > mark.floor ORDER BY last_pos DESC LIMIT $3)
           UNION
           (SELECT root_id FROM unread_event WHERE user_nid = $1 AND room_nid = mark.room_nid AND room_pos > mark.floor AND root_id <> ''
            ORDER BY room_pos DESC LIMIT $3)) t
         CROSS JOIN LATERAL (
           SELECT greatest(mark.floor, max(e.room_pos)) AS room_pos FROM receipt r JOIN event e USING (event_nid)
           WHERE r.room_nid = mark.room_nid AND r.user_nid = $1 AND r.thread_id = t.root_id) read
         LEFT JOIN LATERAL (
           SELECT room_pos FROM thread_event WHERE room_nid = mark.room_nid AND root_id = t.root_id AND room_pos > read.room_pos
           AND sender_nid = $1 ORDER BY room_pos DESC LIMIT 1) own ON true) threads
     )
     SELECT place.room_nid, place.room_id, place.up_to, place.notifiable, place.root_id, place.from_pos, place.base_pos,
       tally.count + redacted.count AS tally, greatest(tally.last_pos, redacted.last_pos, 0) AS last_pos,
       kept.own, kept.own_last, kept.own_notifies, kept.own_counts, kept.own_highlights
     FROM place
     CROSS JOIN LATERAL (
       SELECT count(*)::int, max(room_pos) AS last_pos FROM thread_event t
       WHERE t.room_nid = place.room_nid AND t.root_id = place.root_id AND t.room_pos > place.base_pos AND counts = 1) tally
     CROSS JOIN LATERAL (
       SELECT count(*)::int, max(room_pos) AS last_pos FROM uncounted_event u
       WHERE place.root_id = '' AND u.room_nid = place.room_nid AND u.room_pos > place.base_pos) redacted
     CROSS JOIN LATERAL (
       SELECT count(*)::int AS own, coalesce(max(room_pos), 0) AS own_last, coalesce(sum(notifies), 0)::int AS own_notifies,
         coalesce(sum(counts) FILTER (WHERE room_pos > place.base_pos), 0)::int AS own_counts,
         coalesce(sum(highlights), 0)::int AS own_highlights
       FROM (
         SELECT room_pos, notifies, highlights, counts FROM unread_event u
         WHERE u.user_nid = $1 AND u.room_nid = place.room_nid AND u.root_id = place.root_id AND u.room_pos > place.from_pos
         UNION ALL
         ${IGNORED_EVENTS}) own_event) kept`,
    [userNid, roomNids, most.threads, ignored, most.lookedAt],
  )
}

/**
 * Drops what was kept for a user alone and is read.
 *
 * @param threadId the root of the thread that was read, `main`, or '' for the whole room
 * @param upTo a place in the room's timeline
 */
export async function clearUnread(
  tx: Tx,
  of: { readonly userNid: number; readonly roomNid: number; readonly threadId: string; readonly upTo: number },
): Promise<void> {
  await tx.query(
    `DELETE FROM unread_event WHERE user_nid = $1 AND room_nid = $2 AND room_pos <= $3
     AND ($4 = '' OR root_id = CASE $4 WHEN 'main' THEN '' ELSE $4 END)`,
    [of.userNid, of.roomNid, of.upTo, of.threadId],
  )
}

/** The thread that an event of the timeline was in when it was written. */
export async function findThreadAt(reader: Reader, roomNid: number, pos: number): Promise<string | undefined> {
  const [row] = await reader.query<{ root_id: string }>(
    'SELECT root_id FROM thread_event WHERE room_nid = $1 AND room_pos = $2',
    [roomNid, pos],
  )
  return row?.root_id
}

/** From here on the messages of these rooms count for a user. */
export async function countFromHere(tx: Tx, userNid: number, roomNids: readonly number[]): Promise<void> {
  await tx.query(
    `INSERT INTO counted_from (user_nid, room_nid, room_pos, notifiable)
     SELECT $1, room_nid, last_pos, notifiable FROM room WHERE room_nid = ANY($2::bigint[])
     ON CONFLICT (user_nid, room_nid) DO UPDATE SET room_pos = EXCLUDED.room_pos, notifiable = EXCLUDED.notifiable`,
    [userNid, roomNids],
  )
}

/** The rooms that a user is in. */
export function getJoinedRooms(reader: Reader, userNid: number): Promise<{ room_nid: number; room_id: RoomId }[]> {
  return reader.query(
    `SELECT room_nid, room_id FROM room_member JOIN room USING (room_nid) WHERE user_nid = $1 AND membership = 'join'`,
    [userNid],
  )
}

/** The rooms' counts of notifiable events. */
export function getNotifiableCounts(
  reader: Reader,
  roomNids: readonly number[],
): Promise<{ readonly room_nid: number; readonly notifiable: number }[]> {
  return reader.query('SELECT room_nid, notifiable FROM room WHERE room_nid = ANY($1::bigint[])', [roomNids])
}
