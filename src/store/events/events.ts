import type { EventId } from '../../core/ids.ts'
import type { Reader, Values } from '../db/db.ts'

// Tables: event, event_gap, early_redaction; read: restore_epoch

/**
 * The status of an event that is not simply accepted. `soft-failed`: allowed by the state before it, but not by the room's current state
 * when it came. `rejected`: not allowed by the auth rules. `outlier`: known as part of auth chains, without a place in the room.
 */
export type Standing = 'soft-failed' | 'rejected' | 'outlier'

/** A row of `event`; the columns are explained in the migration. */
export interface EventRow {
  readonly event_nid: number
  readonly room_nid: number
  readonly room_pos: number | null
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
  readonly standing: Standing | null
  readonly reason: string | null
  readonly stream_pos: number | null
  readonly current_chain: number | null
  readonly current_seq: number | null
  readonly auth_nids: readonly number[] | null
  readonly auth_content: string | null
  readonly has_relations: boolean
  readonly json: string
}

/** What a query selects of `event` for `unpackEvent`. */
export const EVENT_COLUMNS = `concat('[', event_nid, ',', room_nid, ',', coalesce(room_pos::text, 'null'), ',', sender_nid, ',',
  origin_server_ts, ',', notifiable, ',', coalesce(replaces_nid::text, 'null'), ',', coalesce(redacted_by::text, 'null'), ',',
  coalesce(txn_token::text, 'null'), ',', state_chain, ',', state_seq, ',', coalesce(key_id::text, 'null'), ',',
  coalesce(stream_pos::text, 'null'), ',', coalesce(current_chain::text, 'null'), ',', coalesce(current_seq::text, 'null'), ',',
  has_relations::int, ']') AS numbers, event_id, type, txn_id, standing, reason, auth_nids, auth_content, json`

/** An event as `EVENT_COLUMNS` gives it. The driver reads one list of numbers in a third of the time that it takes for as many columns. */
export interface PackedEventRow
  extends Pick<
    EventRow,
    'event_id' | 'type' | 'txn_id' | 'standing' | 'reason' | 'auth_nids' | 'auth_content' | 'json'
  > {
  readonly numbers: string
}

export function unpackEvent(row: PackedEventRow): EventRow {
  const numbers = JSON.parse(row.numbers)
  return {
    event_nid: numbers[0],
    room_nid: numbers[1],
    room_pos: numbers[2],
    sender_nid: numbers[3],
    origin_server_ts: numbers[4],
    notifiable: numbers[5],
    replaces_nid: numbers[6],
    redacted_by: numbers[7],
    txn_token: numbers[8],
    state_chain: numbers[9],
    state_seq: numbers[10],
    key_id: numbers[11],
    event_id: row.event_id,
    type: row.type,
    txn_id: row.txn_id,
    standing: row.standing,
    reason: row.reason,
    stream_pos: numbers[12],
    current_chain: numbers[13],
    current_seq: numbers[14],
    auth_nids: row.auth_nids,
    auth_content: row.auth_content,
    has_relations: numbers[15] === 1,
    json: row.json,
  }
}

async function readEvents(reader: Reader, text: string, values: Values): Promise<EventRow[]> {
  return (await reader.query<PackedEventRow>(text, values)).map(unpackEvent)
}

/** Each writer owns this many numbers, beginning at its index times this. */
export const WRITER_SPAN = 2 ** 48

/** The newest position of a writer, or the number before its first: after a restore, above all that were used before it. */
export async function lastPosition(reader: Reader, writer: number): Promise<number> {
  const first = writer * WRITER_SPAN
  const [row] = await reader.query<{ last: number | null }>(
    `SELECT greatest((SELECT max(event_nid) FROM event WHERE event_nid >= $1 AND event_nid < $2),
       (SELECT max(stream_pos) FROM event WHERE stream_pos >= $1 AND stream_pos < $2),
       (SELECT max(event_floor) FROM restore_epoch WHERE event_floor >= $1 AND event_floor < $2)) AS last`,
    [first, first + WRITER_SPAN],
  )
  return row?.last ?? first
}

/** The events with these numbers, in no particular order; unknown numbers are left out. */
export function getEvents(reader: Reader, eventNids: readonly number[]): Promise<EventRow[]> {
  return readEvents(reader, `SELECT ${EVENT_COLUMNS} FROM event WHERE event_nid = ANY($1::bigint[])`, [eventNids])
}

/**
 * As `getEvents`, up to a total of bytes, and at least one event. Of the others only the numbers are returned, unknown ones included. The
 * query compares sizes before it reads large events.
 */
export async function getEventsWithin(
  reader: Reader,
  eventNids: readonly number[],
  maxBytes: number,
): Promise<{ readonly rows: readonly EventRow[]; readonly left: readonly number[] }> {
  const rows = await readEvents(
    reader,
    `SELECT ${EVENT_COLUMNS} FROM (
       SELECT *, sum(octet_length(json)) OVER (ORDER BY event_nid) - octet_length(json) AS bytes_before
       FROM event WHERE event_nid = ANY($1::bigint[])) AS measured
     WHERE bytes_before < $2 ORDER BY event_nid`,
    [eventNids, maxBytes],
  )
  const last = rows.at(-1)?.event_nid ?? Number.POSITIVE_INFINITY
  return { rows, left: eventNids.filter((nid) => nid > last) }
}

export function getEventsById(reader: Reader, eventIds: readonly string[]): Promise<EventRow[]> {
  return readEvents(reader, `SELECT ${EVENT_COLUMNS} FROM event WHERE event_id = ANY($1::text[])`, [eventIds])
}

/** The ids of many events, by number. */
export async function getEventIds(reader: Reader, eventNids: readonly number[]): Promise<Map<number, EventId>> {
  const rows = await reader.query<{ event_nid: number; event_id: EventId }>(
    'SELECT event_nid, event_id FROM event WHERE event_nid = ANY($1::bigint[])',
    [eventNids],
  )
  return new Map(rows.map(({ event_nid, event_id }) => [event_nid, event_id]))
}

/** The JSON of many events, by number. */
export async function getEventTexts(reader: Reader, eventNids: readonly number[]): Promise<Map<number, string>> {
  const rows = await reader.query<{ event_nid: number; json: string }>(
    'SELECT event_nid, json FROM event WHERE event_nid = ANY($1::bigint[])',
    [eventNids],
  )
  return new Map(rows.map(({ event_nid, json }) => [event_nid, json]))
}

/** Up to `limit` events of a room with `after < room_pos <= upTo`, newest first. */
export function getTimelineBackwards(
  reader: Reader,
  roomNid: number,
  after: number,
  upTo: number,
  limit: number,
): Promise<EventRow[]> {
  return readEvents(
    reader,
    `SELECT ${EVENT_COLUMNS} FROM event WHERE room_nid = $1 AND room_pos > $2 AND room_pos <= $3
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
  return readEvents(
    reader,
    `SELECT ${EVENT_COLUMNS} FROM event WHERE room_nid = $1 AND room_pos > $2 AND room_pos <= $3
     ORDER BY room_pos ASC LIMIT $4`,
    [roomNid, after, upTo, limit],
  )
}

/**
 * The stream position of each room's newest event of some types. It looks at the newest events only; if none of them is of these types, it
 * gives the position of the oldest one that it looked at.
 */
export function getNewestOfTypes(
  reader: Reader,
  roomNids: readonly number[],
  types: readonly string[],
  most: number,
): Promise<{ readonly room_nid: number; readonly stamp: number | null }[]> {
  const recent = `SELECT type, room_pos, coalesce(stream_pos, event_nid) AS stamp FROM event
    WHERE room_nid = wanted.nid AND room_pos > 0 ORDER BY room_pos DESC LIMIT $3`
  return reader.query(
    `SELECT wanted.nid AS room_nid, coalesce(
       (SELECT stamp FROM (${recent}) recent WHERE type = ANY ($2::text[]) ORDER BY room_pos DESC LIMIT 1),
       (SELECT stamp FROM (${recent}) recent ORDER BY room_pos LIMIT 1)) AS stamp
     FROM unnest($1::bigint[]) AS wanted (nid)`,
    [roomNids, types, most],
  )
}

/** The position in the room's timeline of the newest event that a reader at `position` (per writer) had seen; 0 when none. */
export async function roomPositionAt(reader: Reader, roomNid: number, position: readonly number[]): Promise<number> {
  const [row] = await reader.query<{ room_pos: number }>(
    `SELECT room_pos FROM event WHERE room_nid = $1 AND room_pos > 0
     AND coalesce(stream_pos, event_nid) <= ($2::bigint[])[(coalesce(stream_pos, event_nid) >> 48) + 1]
     ORDER BY room_pos DESC LIMIT 1`,
    [roomNid, position],
  )
  return row?.room_pos ?? 0
}

/** The events nearest to a time: the first at or after it, or the last at or before it. */
export function nearestEvents(
  reader: Reader,
  roomNid: number,
  ts: number,
  direction: 'f' | 'b',
  limit: number,
): Promise<EventRow[]> {
  const text =
    direction === 'f'
      ? `SELECT ${EVENT_COLUMNS} FROM event WHERE room_nid = $1 AND room_pos IS NOT NULL AND origin_server_ts >= $2 ORDER BY room_pos ASC LIMIT $3`
      : `SELECT ${EVENT_COLUMNS} FROM event WHERE room_nid = $1 AND room_pos IS NOT NULL AND origin_server_ts <= $2 ORDER BY room_pos DESC LIMIT $3`
  return readEvents(reader, text, [roomNid, ts, limit])
}

/** The auth edges of all events of a room that may be in a state or an auth chain, so that cited ones come first. */
export function getAuthEdges(
  reader: Reader,
  roomNid: number,
): Promise<{ readonly event_nid: number; readonly auth_nids: readonly number[] }[]> {
  return reader.query(
    'SELECT event_nid, auth_nids FROM event WHERE room_nid = $1 AND auth_nids IS NOT NULL ORDER BY event_nid',
    [roomNid],
  )
}

/** Those of the ids that are missing and that events of the room refer to. */
export async function getMissing(reader: Reader, roomNid: number, eventIds: readonly string[]): Promise<Set<string>> {
  const rows = await reader.query<{ missing_id: string }>(
    'SELECT DISTINCT missing_id FROM event_gap WHERE room_nid = $1 AND missing_id = ANY($2::text[])',
    [roomNid, eventIds],
  )
  return new Set(rows.map((row) => row.missing_id))
}

/** Redactions of the room that came before their targets, in the order in which they came. */
export function getEarlyRedactions(
  reader: Reader,
  roomNid: number,
  targetIds: readonly string[],
): Promise<{ readonly target_id: string; readonly redaction_nid: number }[]> {
  return reader.query(
    'SELECT target_id, redaction_nid FROM early_redaction WHERE room_nid = $1 AND target_id = ANY($2::text[]) ORDER BY redaction_nid',
    [roomNid, targetIds],
  )
}
