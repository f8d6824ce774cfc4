import type { Reader } from '../db/db.ts'
import { EVENT_COLUMNS, type EventRow, type PackedEventRow, unpackEvent } from '../events/events.ts'

// Tables: room, event

/** What a room is now, and some of its newest events, as they were at one moment. */
export interface RoomNews {
  readonly room: RoomNowRow
  /** Oldest first. */
  readonly events: readonly EventRow[]
}

export interface RoomNowRow {
  readonly head_version: number
  readonly purged_to: number | null
  readonly extremities: readonly number[]
  readonly merged: number | null
  readonly depth: string
  readonly last_pos: number
  readonly last_nid: number
  readonly notifiable: number
  readonly state_chain: number
  readonly state_seq: number
}

/** Its events are those after a place of its timeline. Undefined if there is no such room. */
export async function readRoomNews(
  reader: Reader,
  roomNid: number,
  afterPos: number,
  limit: number,
): Promise<RoomNews | undefined> {
  const rows = await reader.query<RoomNowRow & (PackedEventRow | { readonly numbers: null })>(
    `SELECT head_version, purged_to, extremities, merged, depth::text AS depth, last_pos, last_nid, notifiable, state_chain, state_seq, news.*
     FROM room LEFT JOIN LATERAL (
       SELECT room_pos AS place, ${EVENT_COLUMNS} FROM event WHERE room_nid = $1 AND room_pos > $2 ORDER BY room_pos LIMIT $3) AS news ON true
     WHERE room.room_nid = $1 ORDER BY place`,
    [roomNid, afterPos, limit],
  )
  const [room] = rows
  return room && { room, events: rows.flatMap((row) => (row.numbers === null ? [] : unpackEvent(row))) }
}
