import { groupBy } from '../../core/group-by.ts'
import type { RoomId, UserId } from '../../core/ids.ts'
import { getState } from '../../core/state/trie.ts'
import type { Reader } from '../db/db.ts'
import { getEventTexts } from '../events/events.ts'
import { loadStates } from '../events/state.ts'

// Tables: room, room_member, matrix_user, account, published_room, state_key, device

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

/** All rooms. Reads all memberships: use a connection for long queries. */
export function surveyRooms(reader: Reader, server: string): Promise<SurveyedRoom[]> {
  return reader.query<SurveyedRoom>(
    `SELECT r.room_nid, r.room_id, r.room_version, r.state_chain, r.state_seq,
       EXISTS (SELECT FROM published_room p WHERE p.room_nid = r.room_nid) AS is_public,
       coalesce(m.joined, 0) AS joined, coalesce(m.joined_local, 0) AS joined_local, coalesce(k.keys, 0) AS state_events
     FROM room r
     LEFT JOIN (SELECT room_nid, count(*) AS joined, count(*) FILTER (
         WHERE substr(user_id, strpos(user_id, ':') + 1) = $1) AS joined_local
       FROM room_member JOIN matrix_user USING (user_nid) WHERE membership = 'join' GROUP BY room_nid) m USING (room_nid)
     LEFT JOIN (SELECT room_nid, count(*) AS keys FROM state_key GROUP BY room_nid) k ON k.room_nid = r.room_nid`,
    [server],
  )
}

/** One room, with what concerns this server. */
export interface WholeRoom extends SurveyedRoom {
  /** Devices of this server's users in the room. */
  readonly devices: number
  /** Whether all users of this server who were ever in the room have forgotten it. */
  readonly is_forgotten: boolean
}

/** Counts all members of a room: use a reader of whole tables. */
export async function surveyRoom(reader: Reader, roomNid: number): Promise<WholeRoom | undefined> {
  const joined = `FROM room_member m WHERE m.room_nid = r.room_nid AND m.membership = 'join'`
  const [row] = await reader.query<WholeRoom>(
    `SELECT r.room_nid, r.room_id, r.room_version, r.state_chain, r.state_seq,
       EXISTS (SELECT FROM published_room p WHERE p.room_nid = r.room_nid) AS is_public,
       (SELECT count(*) ${joined}) AS joined,
       (SELECT count(*) FROM account a WHERE a.user_nid IN (SELECT m.user_nid ${joined})) AS joined_local,
       (SELECT count(*) FROM device d WHERE d.user_nid IN (SELECT m.user_nid ${joined})) AS devices,
       NOT EXISTS (SELECT FROM room_member m JOIN account USING (user_nid)
         WHERE m.room_nid = r.room_nid AND NOT m.forgotten) AS is_forgotten,
       (SELECT count(*) FROM state_key k WHERE k.room_nid = r.room_nid) AS state_events
     FROM room r WHERE r.room_nid = $1`,
    [roomNid],
  )
  return row
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
