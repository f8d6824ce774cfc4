import type { EventId } from '../core/ids.ts'
import type { Reader } from './db.ts'

// Table: event

/** A row of `event`; the columns are explained in the migration. */
export interface EventRow {
  readonly event_nid: number
  readonly room_nid: number
  readonly room_pos: number
  readonly sender_nid: number
  readonly origin_server_ts: number
  readonly notifiable: number
  readonly replaces_nid: number | null
  readonly redacted_by: number | null
  readonly txn_token: number | null
  readonly state_chain: number
  readonly state_seq: number
  readonly key_id: number | null
  readonly event_id: EventId
  readonly type: string
  readonly txn_id: string | null
  readonly json: string
}

const COLUMNS = `event_nid, room_nid, room_pos, sender_nid, origin_server_ts, notifiable, replaces_nid, redacted_by,
  txn_token, state_chain, state_seq, key_id, event_id, type, txn_id, json`

/** Each writer owns the numbers from its index times this on. */
export const WRITER_SPAN = 2 ** 48

/** The newest position of a writer, or the number before its first. */
export async function lastPosition(reader: Reader, writer: number): Promise<number> {
  const first = writer * WRITER_SPAN
  const [row] = await reader.query<{ last: number | null }>(
    'SELECT max(event_nid) AS last FROM event WHERE event_nid >= $1 AND event_nid < $2',
    [first, first + WRITER_SPAN],
  )
  return row?.last ?? first
}

/** Rows in no particular order; numbers that do not exist are left out. */
export function getEvents(reader: Reader, eventNids: readonly number[]): Promise<EventRow[]> {
  return reader.query<EventRow>(`SELECT ${COLUMNS} FROM event WHERE event_nid = ANY($1::bigint[])`, [eventNids])
}

export function getEventsById(reader: Reader, eventIds: readonly string[]): Promise<EventRow[]> {
  return reader.query<EventRow>(`SELECT ${COLUMNS} FROM event WHERE event_id = ANY($1::text[])`, [eventIds])
}

/** Up to `limit` events of a room with `after < room_pos <= upTo`, newest first. */
export function getTimelineBackwards(
  reader: Reader,
  roomNid: number,
  after: number,
  upTo: number,
  limit: number,
): Promise<EventRow[]> {
  return reader.query<EventRow>(
    `SELECT ${COLUMNS} FROM event WHERE room_nid = $1 AND room_pos > $2 AND room_pos <= $3
     ORDER BY room_pos DESC LIMIT $4`,
    [roomNid, after, upTo, limit],
  )
}

/** Up to `limit` events of a room with `after < room_pos <= upTo`, oldest first. */
export function getTimelineForwards(
  reader: Reader,
  roomNid: number,
  after: number,
  upTo: number,
  limit: number,
): Promise<EventRow[]> {
  return reader.query<EventRow>(
    `SELECT ${COLUMNS} FROM event WHERE room_nid = $1 AND room_pos > $2 AND room_pos <= $3
     ORDER BY room_pos ASC LIMIT $4`,
    [roomNid, after, upTo, limit],
  )
}

/** The newest `limit` events of each room, newest first within a room: one round trip for a whole initial sync. */
export function getRecentTimelines(reader: Reader, roomNids: readonly number[], limit: number): Promise<EventRow[]> {
  return reader.query<EventRow>(
    `SELECT recent.* FROM unnest($1::bigint[]) AS wanted (nid)
     CROSS JOIN LATERAL (SELECT ${COLUMNS} FROM event WHERE room_nid = wanted.nid ORDER BY room_pos DESC LIMIT $2) recent`,
    [roomNids, limit],
  )
}

/** The position in the room's timeline of the newest event that a reader at `position` (per writer) had seen; 0 when none. */
export async function roomPositionAt(reader: Reader, roomNid: number, position: readonly number[]): Promise<number> {
  const [row] = await reader.query<{ room_pos: number }>(
    `SELECT room_pos FROM event WHERE room_nid = $1 AND room_pos > 0
     AND event_nid <= ($2::bigint[])[(event_nid >> 48) + 1] ORDER BY room_pos DESC LIMIT 1`,
    [roomNid, position],
  )
  return row?.room_pos ?? 0
}

/** The event nearest to a time: the first at or after it, or the last at or before it. */
export async function nearestEvent(
  reader: Reader,
  roomNid: number,
  ts: number,
  direction: 'f' | 'b',
): Promise<EventRow | undefined> {
  const text =
    direction === 'f'
      ? `SELECT ${COLUMNS} FROM event WHERE room_nid = $1 AND origin_server_ts >= $2 ORDER BY room_pos ASC LIMIT 1`
      : `SELECT ${COLUMNS} FROM event WHERE room_nid = $1 AND origin_server_ts <= $2 ORDER BY room_pos DESC LIMIT 1`
  const [row] = await reader.query<EventRow>(text, [roomNid, ts])
  return row
}
