import type { Reader } from '../db/db.ts'
import { EVENT_COLUMNS, type EventRow } from './events.ts'

// Table: event

/** Those of the first `atMost` events after a timeline position that have a relation, oldest first. */
export function getRelating(reader: Reader, roomNid: number, after: number, atMost: number): Promise<EventRow[]> {
  return reader.query<EventRow>(
    `SELECT * FROM (
       SELECT ${EVENT_COLUMNS} FROM event WHERE room_nid = $1 AND room_pos > $2 ORDER BY room_pos LIMIT $3
     ) later WHERE json LIKE '%"m.relates_to":{%' ORDER BY room_pos`,
    [roomNid, after, atMost],
  )
}
