import { groupBy } from '../../core/group-by.ts'
import type { RoomId, UserId } from '../../core/ids.ts'
import { getState } from '../../core/state/trie.ts'
import type { Reader } from '../db/db.ts'
import { getEventTexts } from '../events/events.ts'
import { loadStates } from '../events/state.ts'

// Tables: room, room_member, matrix_user, published_room, state_key, device

/** A summary of a room, without a look at its state. */
export interface SurveyedRoom {
  readonly room_nid: number
  readonly room_id: RoomId
  readonly room_version: string
  readonly state_chain: number
  readonly state_seq: number
  readonly is_public: boolean
  readonly joined: number
  /** Of this server. */
  readonly joined_local: number
  /** How many pieces of state were ever set. */
  readonly state_events: number
}

/** All rooms, or one. Reads all memberships: use a connection for long queries. */
export function surveyRooms(reader: Reader, server: string, roomNid?: number): Promise<SurveyedRoom[]> {
  return reader.query<SurveyedRoom>(
    `SELECT r.room_nid, r.room_id, r.room_version, r.state_chain, r.state_seq,
       EXISTS (SELECT FROM published_room p WHERE p.room_nid = r.room_nid) AS is_public,
       coalesce(m.joined, 0) AS joined, coalesce(m.joined_local, 0) AS joined_local, coalesce(k.keys, 0) AS state_events
     FROM room r
     LEFT JOIN (SELECT room_nid, count(*) AS joined, count(*) FILTER (
         WHERE substr(user_id, strpos(user_id, ':') + 1) = $1) AS joined_local
       FROM room_member JOIN matrix_user USING (user_nid)
       WHERE membership = 'join' AND ($2::bigint IS NULL OR room_nid = $2) GROUP BY room_nid) m USING (room_nid)
     LEFT JOIN (SELECT room_nid, count(*) AS keys FROM state_key
       WHERE $2::bigint IS NULL OR room_nid = $2 GROUP BY room_nid) k ON k.room_nid = r.room_nid
     WHERE $2::bigint IS NULL OR r.room_nid = $2`,
    [server, roomNid ?? null],
  )
}

/** The state events of some types with an empty key, as their JSON, by room and type. */
export async function describeRooms(
  reader: Reader,
  rooms: readonly SurveyedRoom[],
  types: readonly string[],
): Promise<Map<number, Map<string, string>>> {
  const points = new Map(rooms.map((room) => [room.room_nid, { chain: room.state_chain, seq: room.state_seq }]))
  const [states, keys] = await Promise.all([
    loadStates(reader, points),
    reader.query<{ room_nid: number; key_id: number; type: string }>(
      `SELECT room_nid, key_id, type FROM state_key
       WHERE room_nid = ANY($1::bigint[]) AND type = ANY($2::text[]) AND state_key = ''`,
      [[...points.keys()], types],
    ),
  ])
  const placed = keys.flatMap(({ room_nid, key_id, type }) => {
    const state = states.get(room_nid)
    const nid = state ? getState(state, key_id) : 0
    return nid === 0 ? [] : [{ room_nid, type, nid }]
  })
  const texts = await getEventTexts(
    reader,
    placed.map(({ nid }) => nid),
  )
  const found = new Map<number, Map<string, string>>()
  for (const [roomNid, some] of groupBy(placed, ({ room_nid }) => room_nid)) {
    found.set(roomNid, new Map(some.flatMap(({ type, nid }) => (texts.has(nid) ? [[type, texts.get(nid)!]] : []))))
  }
  return found
}

/** The users that are in a room, in the order of their ids. */
export async function listJoined(reader: Reader, roomNid: number): Promise<UserId[]> {
  const rows = await reader.query<{ user_id: UserId }>(
    `SELECT user_id FROM room_member JOIN matrix_user USING (user_nid)
     WHERE room_nid = $1 AND membership = 'join' ORDER BY user_id`,
    [roomNid],
  )
  return rows.map(({ user_id }) => user_id)
}

/** The number of devices of this server's users in a room, and whether all local users that were ever in the room have forgotten it. */
export async function localPresence(
  reader: Reader,
  roomNid: number,
): Promise<{ readonly devices: number; readonly is_forgotten: boolean }> {
  const [row] = await reader.query<{ devices: number; is_forgotten: boolean }>(
    `SELECT (SELECT count(*) FROM room_member m JOIN device d USING (user_nid)
         WHERE m.room_nid = $1 AND m.membership = 'join') AS devices,
       NOT EXISTS (SELECT FROM room_member m JOIN account USING (user_nid)
         WHERE m.room_nid = $1 AND NOT m.forgotten) AS is_forgotten`,
    [roomNid],
  )
  return row!
}
