import { groupBy } from '../../core/group-by.ts'
import type { RoomId, UserId } from '../../core/ids.ts'
import { getState } from '../../core/state/trie.ts'
import type { Reader } from '../db/db.ts'
import { getEventTexts } from '../events/events.ts'
import { loadStates } from '../events/state.ts'

// Tables: room, room_member, matrix_user, account, published_room, state_key, state_change, event, device

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

/** What all rooms can be counted by. */
export type RoomFigure = 'joined' | 'joined_local' | 'state_events'

/** A room in a list of all. */
export interface ListedRoom
  extends Pick<SurveyedRoom, 'room_nid' | 'room_id' | 'room_version' | 'state_chain' | 'state_seq'> {
  readonly is_public: boolean
  /** What was asked for; 0 if nothing was. */
  readonly figure: number
}

/** How the members of the rooms, or their pieces of state, are counted all at once. */
const COUNTS: Readonly<Record<RoomFigure, string>> = {
  joined: `room_member WHERE membership = 'join'`,
  joined_local: `room_member JOIN account USING (user_nid) WHERE membership = 'join'`,
  state_events: 'state_key',
}

/** All rooms, or those that are public or empty, or not. A figure costs a pass over what it counts: use a reader of whole tables. */
export function listAllRooms(
  reader: Reader,
  wanted: {
    readonly figure: RoomFigure | undefined
    readonly isPublic: boolean | undefined
    readonly isEmpty: boolean | undefined
  },
): Promise<ListedRoom[]> {
  const { figure, isPublic, isEmpty } = wanted
  const counted =
    figure === undefined
      ? ''
      : `LEFT JOIN (SELECT room_nid, count(*) AS figure FROM ${COUNTS[figure]} GROUP BY room_nid) f USING (room_nid)`
  return reader.query<ListedRoom>(
    `SELECT r.room_nid, r.room_id, r.room_version, r.state_chain, r.state_seq, p.room_nid IS NOT NULL AS is_public,
       ${figure === undefined ? '0' : 'coalesce(f.figure, 0)'} AS figure
     FROM room r LEFT JOIN published_room p USING (room_nid) ${counted}
     WHERE ($1::boolean IS NULL OR (p.room_nid IS NOT NULL) = $1)
       AND ($2::boolean IS NULL OR $2 <> EXISTS (SELECT FROM room_member m WHERE m.room_nid = r.room_nid AND membership = 'join'))`,
    [isPublic ?? null, isEmpty ?? null],
  )
}

/** What is said of some rooms in a list, in no order. Counts all their members. */
export function surveyRooms(reader: Reader, roomNids: readonly number[]): Promise<SurveyedRoom[]> {
  return reader.query<SurveyedRoom>(
    `SELECT r.room_nid, r.room_id, r.room_version, r.state_chain, r.state_seq, members.joined, members.joined_local,
       EXISTS (SELECT FROM published_room p WHERE p.room_nid = r.room_nid) AS is_public,
       (SELECT count(*) FROM state_key k WHERE k.room_nid = r.room_nid) AS state_events
     FROM room r CROSS JOIN LATERAL (
       SELECT count(*) AS joined, count(a.user_nid) AS joined_local
       FROM room_member LEFT JOIN account a USING (user_nid) WHERE room_nid = r.room_nid AND membership = 'join') members
     WHERE r.room_nid = ANY($1::bigint[])`,
    [roomNids],
  )
}

const ROOMS_DESCRIBED_AT_ONCE = 200

/**
 * The state events of some types with an empty key of many rooms, as their JSON, by room and type. Rooms whose state has no branch, most of
 * them, cost an index probe for each type; use a reader of whole tables.
 */
export async function describeAllRooms(
  reader: Reader,
  rooms: readonly ListedRoom[],
  types: readonly string[],
): Promise<Map<number, Map<string, string>>> {
  const plain = rooms.filter(({ state_chain }) => state_chain === 0)
  const rows = await reader.query<{ room_nid: number; type: string; json: string }>(
    `SELECT k.room_nid, k.type, e.json
     FROM unnest($1::bigint[], $2::int[]) AS point (room_nid, seq)
     JOIN state_key k ON k.room_nid = point.room_nid AND k.type = ANY($3::text[]) AND k.state_key = ''
     CROSS JOIN LATERAL (
       SELECT c.event_nid FROM state_change c
       WHERE c.room_nid = k.room_nid AND c.key_id = k.key_id AND c.chain = 0 AND c.seq <= point.seq
       ORDER BY c.seq DESC LIMIT 1) c
     JOIN event e USING (event_nid)`,
    [plain.map(({ room_nid }) => room_nid), plain.map(({ state_seq }) => state_seq), types],
  )
  const found = new Map<number, Map<string, string>>()
  for (const { room_nid, type, json } of rows) {
    const of = found.get(room_nid)
    if (of) of.set(type, json)
    else found.set(room_nid, new Map([[type, json]]))
  }
  const branched = rooms.filter(({ state_chain }) => state_chain !== 0)
  for (let start = 0; start < branched.length; start += ROOMS_DESCRIBED_AT_ONCE) {
    const some = await describeRooms(reader, branched.slice(start, start + ROOMS_DESCRIBED_AT_ONCE), types)
    for (const [roomNid, texts] of some) found.set(roomNid, texts)
  }
  return found
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
  rooms: readonly Pick<SurveyedRoom, 'room_nid' | 'state_chain' | 'state_seq'>[],
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
