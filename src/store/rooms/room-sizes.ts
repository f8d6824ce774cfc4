import type { RoomId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'

// Tables read: event, room

export interface RoomSize {
  readonly room_id: RoomId
  /** Bytes of the room's events and their indexes, estimated. */
  readonly estimated_size: number
}

/**
 * The largest rooms. A sample of the pages of the event table says which share of it each room has: exact for a small table, close for a
 * large one.
 */
export async function estimateRoomSizes(reader: Reader, sampledRows: number, atMost: number): Promise<RoomSize[]> {
  const [size] = await reader.query<{ bytes: number; rows: number }>(
    `SELECT pg_total_relation_size('event')::float8 AS bytes, reltuples::float8 AS rows FROM pg_class WHERE oid = 'event'::regclass`,
  )
  const { bytes = 0, rows = 0 } = size ?? {}
  const percent = rows <= sampledRows ? 100 : Math.max(0.001, (100 * sampledRows) / rows)
  return reader.query<RoomSize>(
    `WITH sampled AS (SELECT room_nid, sum(length(json) + 200)::float8 AS weight FROM event TABLESAMPLE SYSTEM ($1) GROUP BY room_nid),
       whole AS (SELECT sum(weight) AS weight FROM sampled)
     SELECT room_id, round($2::float8 * sampled.weight / whole.weight)::bigint AS estimated_size
     FROM sampled JOIN room USING (room_nid), whole ORDER BY sampled.weight DESC, room_id LIMIT $3`,
    [percent, bytes, atMost],
  )
}
