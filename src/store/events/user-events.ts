import type { RoomId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'

// Tables: event, room

export interface SentEvent {
  readonly event_nid: number
  readonly room_id: RoomId
  readonly json: string
}

/** The events that a user has sent, in the order in which they came here. Reads the whole log: use a connection for long queries. */
export function eventsSentBy(reader: Reader, userNid: number, after: number, atMost: number): Promise<SentEvent[]> {
  return reader.query<SentEvent>(
    `SELECT event_nid, room_id, json FROM event JOIN room USING (room_nid)
     WHERE sender_nid = $1 AND event_nid > $2 AND standing IS NULL ORDER BY event_nid LIMIT $3`,
    [userNid, after, atMost],
  )
}
