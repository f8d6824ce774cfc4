import type { Reader } from '../db/db.ts'
import { EVENT_COLUMNS, type EventRow } from '../events/events.ts'

// Tables: room, event

/** What a room is now, beside one of its newest events. */
export interface RoomNewsRow extends Omit<EventRow, 'event_nid'> {
  /** Null in the one row of a room without newer events. */
  readonly event_nid: number | null
  readonly head_version: number
  readonly purged_to: number | null
  readonly extremities: readonly number[]
  readonly merged: number | null
  readonly depth: string
  readonly last_pos: number
  readonly last_nid: number
  readonly notifiable_now: number
  readonly chain_now: number
  readonly seq_now: number
}

/** A room and its events after a place of its timeline, oldest first, as they were at one moment. No row if there is no such room. */
export function readRoomNews(reader: Reader, roomNid: number, afterPos: number, limit: number): Promise<RoomNewsRow[]> {
  return reader.query<RoomNewsRow>(
    `SELECT head_version, purged_to, extremities, merged, depth::text AS depth, last_pos, last_nid,
       room.notifiable AS notifiable_now, room.state_chain AS chain_now, room.state_seq AS seq_now, news.*
     FROM room LEFT JOIN LATERAL (
       SELECT ${EVENT_COLUMNS} FROM event WHERE room_nid = $1 AND room_pos > $2 ORDER BY room_pos LIMIT $3) AS news ON true
     WHERE room.room_nid = $1 ORDER BY news.room_pos`,
    [roomNid, afterPos, limit],
  )
}
