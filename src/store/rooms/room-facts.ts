import type { Reader } from '../db/db.ts'

// Tables: room, room_member, state_key, state_change, event

export interface PlainFacts {
  readonly room_nid: number
  readonly is_encrypted: boolean
  /** Events, as JSON. */
  readonly create: string | null
  readonly name: string | null
}

const current = (type: string) => `(SELECT c.event_nid FROM state_key k CROSS JOIN LATERAL (
    SELECT event_nid FROM state_change c WHERE c.room_nid = k.room_nid AND c.key_id = k.key_id AND c.chain = 0 AND c.seq <= room.state_seq
    ORDER BY c.seq DESC LIMIT 1) c
  WHERE k.room_nid = room.room_nid AND k.type = '${type}' AND k.state_key = '')`

const json = (type: string) => `(SELECT json FROM event WHERE event_nid = ${current(type)})`

/**
 * What lists of rooms filter by, without reading the rooms' states. Rooms whose current state is on a branch are missing.
 */
export function getPlainFacts(reader: Reader, roomNids: readonly number[]): Promise<PlainFacts[]> {
  return reader.query<PlainFacts>(
    `SELECT room_nid, coalesce(${current('m.room.encryption')}, 0) <> 0 AS is_encrypted, ${json('m.room.create')} AS create,
       ${json('m.room.name')} AS name
     FROM room WHERE room_nid = ANY($1::bigint[]) AND state_chain = 0`,
    [roomNids],
  )
}

/** Rooms that were made by like events. */
export interface RoomsOfType {
  /** Their numbers, separated by commas. */
  readonly room_nids: string
  /** The event that made them, as JSON; null for rooms without a type. */
  readonly create: string | null
}

/**
 * The types of rooms. Rooms whose state does not begin with the event that made them are missing.
 *
 * Canonical JSON writes the key of an event's own type once. Only if it is there again may the content hold one, so the other events are
 * not read out: thousands of rooms without a type make one row.
 */
export function getRoomTypes(reader: Reader, roomNids: readonly number[]): Promise<RoomsOfType[]> {
  return reader.query<RoomsOfType>(ofTypes('room.room_nid = ANY($1::bigint[])', 'room'), [roomNids])
}

/** The same for all rooms that a user is in. */
export function getRoomTypesOfUser(reader: Reader, userNid: number): Promise<RoomsOfType[]> {
  return reader.query<RoomsOfType>(ofTypes(`room.user_nid = $1 AND room.membership = 'join'`, 'room_member room'), [
    userNid,
  ])
}

const ofTypes = (which: string, from: string) =>
  `SELECT string_agg(room_nid::text, ',') AS room_nids, "create" FROM (
     SELECT room.room_nid, CASE WHEN json LIKE '%"type":%"type":%' THEN json END AS "create"
     FROM ${from} JOIN state_change c ON c.room_nid = room.room_nid AND c.chain = 0 AND c.seq = 1
       JOIN event ON event.event_nid = c.event_nid AND event.type = 'm.room.create'
     WHERE ${which}) typed
   GROUP BY "create"`
