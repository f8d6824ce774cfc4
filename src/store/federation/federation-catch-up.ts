import type { ServerName, UserId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'

// Tables read: account, event, room, room_member, room_filling, matrix_user, federation_forward, federation_parting

/** Written as in the index on users. */
const serverOf = (userId: string) => `substr(${userId}, strpos(${userId}, ':') + 1)`

const OWN_EVENTS = `FROM event JOIN matrix_user sender ON sender.user_nid = event.sender_nid
  WHERE event_nid >= $1 AND ${serverOf('sender.user_id')} = $2 AND standing IS NULL AND room_pos IS NOT NULL
  AND (stream_pos IS NULL OR stream_pos >= 0)`

/** Events in rooms with other servers, and memberships: they may concern the last user of another server. */
const FOR_OTHERS = `AND (type = 'm.room.member' OR EXISTS (
  SELECT FROM room_member JOIN matrix_user member USING (user_nid)
  WHERE room_member.room_nid = event.room_nid AND membership = 'join' AND ${serverOf('member.user_id')} <> $2)
  OR EXISTS (SELECT FROM room_filling WHERE room_filling.room_nid = event.room_nid AND filled_at IS NULL))`

/** When the event with a number was made, or the first one after it; in milliseconds. */
export async function timeOfEvent(reader: Reader, eventNid: number): Promise<number | undefined> {
  const [row] = await reader.query<{ at: number }>(
    'SELECT origin_server_ts AS at FROM event WHERE event_nid >= $1 ORDER BY event_nid LIMIT 1',
    [eventNid],
  )
  return row?.at
}

/** The first events of our users, from a number on, that may concern other servers. */
export async function getOwnEvents(
  reader: Reader,
  from: number,
  ownServer: ServerName,
  atMost: number,
): Promise<number[]> {
  const rows = await reader.query<{ event_nid: number }>(
    `SELECT event_nid ${OWN_EVENTS} ${FOR_OTHERS} ORDER BY event_nid LIMIT $3`,
    [from, ownServer, atMost],
  )
  return rows.map(({ event_nid }) => event_nid)
}

/** A user of this server whose join, a repeated one included, is after a stream position. */
export interface OwnJoin {
  readonly room_nid: number
  readonly user_nid: number
  readonly user_id: UserId
  readonly event_nid: number
  readonly at: number
}

export function getOwnJoins(reader: Reader, after: number, atMost: number): Promise<OwnJoin[]> {
  return reader.query(
    `SELECT m.room_nid, m.user_nid, u.user_id, m.event_nid, e.at FROM (
       SELECT event_nid, room_nid, sender_nid, event_nid AS at FROM event
       WHERE event_nid > $1 AND stream_pos IS NULL AND room_pos > 0
       UNION ALL
       SELECT event_nid, room_nid, sender_nid, stream_pos FROM event WHERE stream_pos > $1 AND room_pos > 0
     ) e
     JOIN room_member m ON m.room_nid = e.room_nid AND m.user_nid = e.sender_nid AND m.event_nid = e.event_nid
     JOIN account ON account.user_nid = m.user_nid JOIN matrix_user u ON u.user_nid = m.user_nid
     WHERE m.membership = 'join' ORDER BY e.at LIMIT $2`,
    [after, atMost],
  )
}

/**
 * The rooms that a server is in, those that it is said to be in while they have partial state, and those that its last user was kicked
 * from; each with the last event that concerns the server.
 */
const SHARED = `WITH shared AS MATERIALIZED (
  SELECT room_nid, max(until) AS until FROM (
    SELECT room_nid, 9223372036854775807 AS until FROM matrix_user JOIN room_member USING (user_nid)
      WHERE ${serverOf('user_id')} = $3 AND membership = 'join'
    UNION ALL
    SELECT room_nid, 9223372036854775807 FROM room_filling WHERE filled_at IS NULL AND ($3 = resident OR $3 = ANY (servers))
    UNION ALL
    SELECT room_nid, event_nid FROM federation_parting JOIN event USING (event_nid) WHERE server = $3 AND event_nid >= $1
  ) AS concerned GROUP BY room_nid)`

/**
 * The newest events of a shared room that this server must send: its own, and those that it forwards for others. The query walks down the
 * timeline, one entry at a time, until the events are too old: no index leads from a room to its events by number.
 */
const newestOwed = (atMost: string) => `LATERAL (
  WITH RECURSIVE walk AS (
    (SELECT event_nid, room_pos, coalesce(stream_pos, event_nid) AS place, sender_nid, standing FROM event
      WHERE room_nid = shared.room_nid AND room_pos > 0 ORDER BY room_pos DESC LIMIT 1)
    UNION ALL
    SELECT below.* FROM walk, LATERAL (
      SELECT event_nid, room_pos, coalesce(stream_pos, event_nid), sender_nid, standing FROM event
      WHERE room_nid = shared.room_nid AND room_pos > 0 AND room_pos < walk.room_pos ORDER BY room_pos DESC LIMIT 1
    ) AS below WHERE walk.place >= $1 OR walk.place < 0
  )
  SELECT event_nid FROM walk JOIN matrix_user sender ON sender.user_nid = sender_nid
  WHERE event_nid >= $1 AND event_nid <= until AND place >= 0 AND standing IS NULL AND (${serverOf('sender.user_id')} = $2
    OR event_nid IN (SELECT event_nid FROM federation_forward WHERE from_server <> $3))
  LIMIT ${atMost}
) AS owed`

export interface Owing {
  readonly from: number
  readonly ownServer: ServerName
  readonly server: ServerName
}

/** The first events that are not sent to a server yet, from a number on. */
export async function getOwedEvents(reader: Reader, owing: Owing, atMost: number): Promise<number[]> {
  const rows = await reader.query<{ event_nid: number }>(
    `${SHARED} SELECT event_nid FROM shared JOIN room USING (room_nid), ${newestOwed('$4')}
     WHERE last_nid >= $1 ORDER BY event_nid LIMIT $4`,
    [owing.from, owing.ownServer, owing.server, atMost],
  )
  return rows.map(({ event_nid }) => event_nid)
}

/** The last event of a room that must be sent to a server, and the forward extremities of the room. */
export interface RoomEnd {
  readonly room_nid: number
  readonly event_nid: number
  readonly extremities: readonly number[]
}

/** The end of each room with unsent events for a server; the rooms that were quiet longest come first. */
export function getRoomEnds(reader: Reader, owing: Owing, atMost: number): Promise<RoomEnd[]> {
  return reader.query(
    `${SHARED} SELECT room_nid, event_nid, CASE WHEN until > last_nid THEN extremities ELSE '{}' END AS extremities
     FROM shared JOIN room USING (room_nid), ${newestOwed('1')}
     WHERE last_nid >= $1 ORDER BY event_nid LIMIT $4`,
    [owing.from, owing.ownServer, owing.server, atMost],
  )
}
