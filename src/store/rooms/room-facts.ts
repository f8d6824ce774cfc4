import type { Reader } from '../db/db.ts'

// Tables: room, state_key, state_change, event

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
