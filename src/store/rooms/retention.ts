import type { RoomId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: arrival_mark; read: event, room, state_key

/** Notes which event is the newest now, and forgets notes from before a time. */
export async function markArrivals(tx: Tx, now: number, keptFrom: number): Promise<void> {
  await tx.query(
    `INSERT INTO arrival_mark (at, event_nid) SELECT $1, coalesce(max(event_nid), 0) FROM event ON CONFLICT (at) DO NOTHING`,
    [now],
  )
  await tx.query('DELETE FROM arrival_mark WHERE at < $1', [keptFrom])
}

/** A number that all events have, or a smaller one, which had come in by a time; 0 if that is not known. */
export async function arrivedBy(reader: Reader, time: number): Promise<number> {
  const [row] = await reader.query<{ event_nid: number }>(
    'SELECT event_nid FROM arrival_mark WHERE at <= $1 ORDER BY at DESC LIMIT 1',
    [time],
  )
  return row?.event_nid ?? 0
}

export interface SurveyedRoom {
  readonly room_nid: number
  readonly room_id: RoomId
  /** Whether the room says, or said, for how long its messages are kept. */
  readonly says_itself: boolean
  /** Time and number of its oldest message that was not removed; null if there is none. */
  readonly oldest_ts: number | null
  readonly oldest_nid: number | null
}

/** The next rooms, by number. */
export function surveyRooms(reader: Reader, after: number, limit: number): Promise<SurveyedRoom[]> {
  return reader.query<SurveyedRoom>(
    `SELECT r.room_nid, r.room_id, oldest.ts AS oldest_ts, oldest.event_nid AS oldest_nid,
       EXISTS (SELECT FROM state_key k WHERE k.room_nid = r.room_nid AND k.type = 'm.room.retention' AND k.state_key = '') AS says_itself
     FROM (SELECT * FROM room WHERE room_nid > $1 ORDER BY room_nid LIMIT $2) r
     LEFT JOIN LATERAL (SELECT event_nid, origin_server_ts AS ts FROM event e WHERE e.room_nid = r.room_nid
       AND (r.purged_to IS NULL OR e.room_pos > r.purged_to) AND e.room_pos IS NOT NULL AND e.key_id IS NULL
       ORDER BY e.room_pos LIMIT 1) oldest ON true
     ORDER BY r.room_nid`,
    [after, limit],
  )
}

/** The first message after a position that is from after a time and came in after an event; undefined if there is none. */
export async function firstKept(
  reader: Reader,
  roomNid: number,
  kept: { readonly after: number; readonly ts: number; readonly upToTs: number; readonly nid: number },
): Promise<number | undefined> {
  const [row] = await reader.query<{ room_pos: number }>(
    `SELECT room_pos FROM event WHERE room_nid = $1 AND room_pos > $2 AND key_id IS NULL
       AND origin_server_ts > $3 AND origin_server_ts <= $4 AND event_nid > $5 ORDER BY room_pos LIMIT 1`,
    [roomNid, kept.after, kept.ts, kept.upToTs, kept.nid],
  )
  return row?.room_pos
}

/** The last message between two positions, both excluded; undefined if there is none. */
export async function lastMessage(
  reader: Reader,
  roomNid: number,
  { after, below }: { readonly after: number; readonly below: number },
): Promise<{ readonly event_nid: number; readonly room_pos: number } | undefined> {
  const [row] = await reader.query<{ event_nid: number; room_pos: number }>(
    `SELECT event_nid, room_pos FROM event WHERE room_nid = $1 AND room_pos > $2 AND room_pos < $3 AND key_id IS NULL
     ORDER BY room_pos DESC LIMIT 1`,
    [roomNid, after, below],
  )
  return row
}

/** The last event before a position that says it is not from after a time; undefined if there is none. */
export async function lastFrom(
  reader: Reader,
  roomNid: number,
  { ts, below }: { readonly ts: number; readonly below: number },
): Promise<{ readonly event_nid: number; readonly room_pos: number } | undefined> {
  const [row] = await reader.query<{ event_nid: number; room_pos: number }>(
    `SELECT event_nid, room_pos FROM event WHERE room_nid = $1 AND room_pos < $3 AND origin_server_ts <= $2
     ORDER BY room_pos DESC LIMIT 1`,
    [roomNid, ts, below],
  )
  return row
}
