import type { EventId, ServerName } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'

// Tables: event_gap, event, matrix_user

/** An event that is missing, and the one in the timeline that refers to it. */
export interface GapRow {
  readonly missing_id: EventId
  readonly event_nid: number
}

/** The missing events that events at `from <= room_pos < to` refer to, lowest position first. */
export function getGaps(reader: Reader, roomNid: number, from: number, to: number, limit: number): Promise<GapRow[]> {
  return reader.query<GapRow>(
    `SELECT missing_id, event_nid FROM event_gap JOIN event USING (event_nid)
     WHERE event_gap.room_nid = $1 AND room_pos >= $2 AND room_pos < $3 ORDER BY room_pos, missing_id LIMIT $4`,
    [roomNid, from, to, limit],
  )
}

/** The last join by which a server came into a room, up to a stream position, if events before it are missing. */
export async function lastArrival(
  reader: Reader,
  roomNid: number,
  server: ServerName,
  upTo: number,
): Promise<number | undefined> {
  const [row] = await reader.query<{ event_nid: number }>(
    `SELECT event_nid FROM event_gap JOIN event USING (event_nid) JOIN matrix_user ON user_nid = sender_nid
     WHERE event_gap.room_nid = $1 AND type = 'm.room.member' AND substr(user_id, strpos(user_id, ':') + 1) = $2
       AND coalesce(stream_pos, event_nid) <= $3
     ORDER BY event_nid DESC LIMIT 1`,
    [roomNid, server, upTo],
  )
  return row?.event_nid
}

/** An event with its numbers, its state key's number and its status. */
export interface StatePart {
  readonly event_id: EventId
  readonly event_nid: number
  readonly room_nid: number
  readonly key_id: number | null
  readonly standing: string | null
}

/** Known events of a state that another server gave as event ids. Without JSON, because there may be tens of thousands. */
export function getStateParts(reader: Reader, eventIds: readonly EventId[]): Promise<StatePart[]> {
  return reader.query<StatePart>(
    'SELECT event_id, event_nid, room_nid, key_id, standing FROM event WHERE event_id = ANY($1::text[])',
    [eventIds],
  )
}
