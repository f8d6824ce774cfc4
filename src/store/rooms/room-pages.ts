import type { EventId, UserId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'
import { decodable } from '../db/decodable.ts'
import type { SurveyedRoom } from './room-survey.ts'

// Tables: room, room_member, room_alias, published_room, state_key, state_change, event, account, matrix_user

export const ROOM_ORDERS = {
  members: `(SELECT count(*) FROM room_member m WHERE m.room_nid = r.room_nid AND m.membership = 'join')`,
  events: 'r.last_pos',
  newest: 'r.room_nid',
} as const

export interface RoomsWanted {
  /** Part of the id, of an alias of this server, or of the name; in any case. A name is found while the room's state has no branch. */
  readonly search: string | undefined
  readonly order: keyof typeof ROOM_ORDERS
  readonly from: number
  readonly limit: number
}

export interface PagedRoom extends SurveyedRoom {
  /** Events in the timeline. */
  readonly last_pos: number
  readonly total: number
}

const NAME = `(SELECT ${decodable('e.json')} FROM state_key k CROSS JOIN LATERAL (
    SELECT c.event_nid FROM state_change c WHERE c.room_nid = k.room_nid AND c.key_id = k.key_id AND c.chain = 0 AND c.seq <= r.state_seq
    ORDER BY c.seq DESC LIMIT 1) c JOIN event e USING (event_nid)
  WHERE k.room_nid = r.room_nid AND k.type = 'm.room.name' AND k.state_key = '') #>> '{content,name}'`

/** A page of all rooms, in one pass over them and, for the order of their members, over all memberships: use a reader of whole tables. */
export function pageRooms(reader: Reader, { search, order, from, limit }: RoomsWanted): Promise<PagedRoom[]> {
  // A search finds few rooms, whose members are counted one by one; without one, it is faster to count all at once.
  const isCounted = order === 'members' && search === undefined
  const sizes = isCounted
    ? `LEFT JOIN (SELECT room_nid, count(*) AS joined FROM room_member WHERE membership = 'join' GROUP BY room_nid) m USING (room_nid)`
    : ''
  const place = isCounted ? 'coalesce(m.joined, 0)' : ROOM_ORDERS[order]
  const wanted =
    search === undefined
      ? ''
      : `WHERE position(lower($3) IN lower(r.room_id)) > 0
           OR EXISTS (SELECT FROM room_alias a WHERE a.room_nid = r.room_nid AND position(lower($3) IN lower(a.alias)) > 0)
           OR position(lower($3) IN lower(${NAME})) > 0`
  return reader.query<PagedRoom>(
    `WITH found AS MATERIALIZED (
       SELECT r.room_nid, ${place} AS place FROM room r ${sizes} ${wanted}),
     page AS (SELECT * FROM found ORDER BY place DESC, room_nid LIMIT $1 OFFSET $2)
     SELECT r.room_nid, r.room_id, r.room_version, r.state_chain, r.state_seq, r.last_pos, members.joined, members.joined_local,
       (SELECT count(*) FROM found) AS total,
       EXISTS (SELECT FROM published_room p WHERE p.room_nid = r.room_nid) AS is_public,
       (SELECT count(*) FROM state_key k WHERE k.room_nid = r.room_nid) AS state_events
     FROM page JOIN room r USING (room_nid) CROSS JOIN LATERAL (
       SELECT count(*) AS joined, count(a.user_nid) AS joined_local
       FROM room_member LEFT JOIN account a USING (user_nid) WHERE room_nid = r.room_nid AND membership = 'join') members
     ORDER BY page.place DESC, page.room_nid`,
    [limit, from, ...(search === undefined ? [] : [search])],
  )
}

export interface PagedMember {
  readonly user_id: UserId
  readonly membership: string
}

/** A page of all who have a membership in a room: those who are in it first, then in the order of their ids. */
export async function pageMembers(
  reader: Reader,
  roomNid: number,
  { from, limit }: { readonly from: number; readonly limit: number },
): Promise<{ readonly members: PagedMember[]; readonly total: number }> {
  const [members, [counted]] = await Promise.all([
    reader.query<PagedMember>(
      `SELECT user_id, membership FROM room_member JOIN matrix_user USING (user_nid) WHERE room_nid = $1
       ORDER BY membership <> 'join', user_id LIMIT $2 OFFSET $3`,
      [roomNid, limit, from],
    ),
    reader.query<{ total: number }>('SELECT count(*) AS total FROM room_member WHERE room_nid = $1', [roomNid]),
  ])
  return { members, total: counted?.total ?? 0 }
}

export interface GraphRow {
  readonly event_nid: number
  readonly room_pos: number | null
  readonly event_id: EventId
  readonly type: string
  readonly origin_server_ts: number
  readonly sender: UserId
  readonly standing: string | null
  readonly reason: string | null
  readonly state_key: string | null
  readonly depth: string | null
  /** JSON of `prev_events`. */
  readonly prev_events: string | null
  readonly json_bytes: number
}

/**
 * The newest events of a room's timeline before a position, and the newest of those that were refused, in no order. The refused ones are
 * found among all that have no place in the timeline.
 */
export function readGraph(reader: Reader, roomNid: number, before: number, limit: number): Promise<GraphRow[]> {
  const columns = `event_nid, room_pos, event_id, type, origin_server_ts, standing, reason, sender_nid, octet_length(json) AS json_bytes,
    ${decodable('json')} AS parsed`
  return reader.query<GraphRow>(
    `SELECT e.event_nid, e.room_pos, e.event_id, e.type, e.origin_server_ts, u.user_id AS sender, e.standing, e.reason,
       e.json_bytes, e.parsed ->> 'state_key' AS state_key, e.parsed ->> 'depth' AS depth,
       e.parsed ->> 'prev_events' AS prev_events
     FROM ((SELECT ${columns} FROM event WHERE room_nid = $1 AND room_pos < $2 ORDER BY room_pos DESC LIMIT $3)
       UNION ALL
       (SELECT ${columns} FROM event WHERE room_nid = $1 AND room_pos IS NULL AND standing IN ('rejected', 'soft-failed')
        ORDER BY event_nid DESC LIMIT $3)) e
     JOIN matrix_user u ON u.user_nid = e.sender_nid`,
    [roomNid, before, limit],
  )
}
