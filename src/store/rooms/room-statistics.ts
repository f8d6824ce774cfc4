import type { Reader } from '../db/db.ts'

// Tables: event, room_member, matrix_user, media_content

export interface RoomStatistics {
  readonly events: number
  readonly state_events: number
  /** Of the events themselves, without indexes. */
  readonly bytes: number
  readonly first_ts: number | null
  readonly last_ts: number | null
  readonly last_day: number
  readonly last_month: number
}

/** Counts over all events of a room. Use a connection for long queries. */
export async function countRoom(reader: Reader, roomNid: number, now: number): Promise<RoomStatistics> {
  const [row] = await reader.query<RoomStatistics>(
    `SELECT count(*) AS events, count(key_id) AS state_events, coalesce(sum(length(json)), 0)::bigint AS bytes,
       min(origin_server_ts) AS first_ts, max(origin_server_ts) AS last_ts,
       count(*) FILTER (WHERE origin_server_ts > $2) AS last_day, count(*) FILTER (WHERE origin_server_ts > $3) AS last_month
     FROM event WHERE room_nid = $1`,
    [roomNid, now - DAY_MS, now - 30 * DAY_MS],
  )
  return row!
}

const DAY_MS = 24 * 3_600_000

export function commonTypes(
  reader: Reader,
  roomNid: number,
  atMost: number,
): Promise<{ type: string; count: number }[]> {
  return reader.query(
    'SELECT type, count(*) AS count FROM event WHERE room_nid = $1 GROUP BY type ORDER BY 2 DESC, 1 LIMIT $2',
    [roomNid, atMost],
  )
}

/** The servers of the joined members, those with most first. */
export function serversOfRoom(
  reader: Reader,
  roomNid: number,
  atMost: number,
): Promise<{ server: string; members: number; total: number }[]> {
  return reader.query(
    `SELECT substr(user_id, strpos(user_id, ':') + 1) AS server, count(*) AS members, count(*) OVER () AS total
     FROM room_member JOIN matrix_user USING (user_nid) WHERE room_nid = $1 AND membership = 'join'
     GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT $2`,
    [roomNid, atMost],
  )
}
