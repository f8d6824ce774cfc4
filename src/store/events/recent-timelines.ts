import type { EventId, UserId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'
import { AFTER_AGE_OF_MESSAGE, clientText, type TextEvent } from './client-texts.ts'
import type { EventRow, Standing } from './events.ts'
import { BETWEEN_TEXTS, splitTexts } from './joined-texts.ts'

// Tables: read: event, matrix_user

/** An event without its text, as `RECENT_MEMBERS` gives it. */
type RecentMembers = readonly [
  event_nid: number,
  room_pos: number,
  sender_nid: number,
  origin_server_ts: number,
  notifiable: number,
  state_chain: number,
  state_seq: number,
  has_relations: boolean,
  event_id: EventId,
  type: string,
  ...rest: readonly [
    replaces_nid: number | null,
    redacted_by: number | null,
    txn_token: number | null,
    key_id: number | null,
    stream_pos: number | null,
    current_chain: number | null,
    current_seq: number | null,
    txn_id: string | null,
    standing: Standing | null,
    reason: string | null,
    auth_nids: readonly number[] | null,
    auth_content: string | null,
  ],
]

const RECENT_MEMBERS = `json_build_array(event_nid, room_pos, sender_nid, origin_server_ts, notifiable, state_chain, state_seq, has_relations,
  event_id, type, replaces_nid, redacted_by, txn_token, key_id, stream_pos, current_chain, current_seq, txn_id, standing, reason, auth_nids,
  auth_content)`

/**
 * The newest `limit` events of each room, newest first: one round trip for a whole initial sync, and one row for each room, which the driver
 * reads in a tenth of the time that it takes to read one for each event. Before rows are kept they need {@link withOwnText}.
 */
export async function getRecentTimelines(
  reader: Reader,
  roomNids: readonly number[],
  limit: number,
): Promise<Map<number, EventRow[]>> {
  const rooms = await reader.query<{ room_nid: number; members: string; texts: string }>(
    `SELECT wanted.nid AS room_nid, recent.* FROM unnest($1::bigint[]) AS wanted (nid)
     CROSS JOIN LATERAL (
       SELECT json_agg(${RECENT_MEMBERS} ORDER BY room_pos DESC)::text AS members,
         string_agg(json, $3 ORDER BY room_pos DESC) AS texts
       FROM (SELECT * FROM event WHERE room_nid = wanted.nid AND room_pos IS NOT NULL ORDER BY room_pos DESC LIMIT $2) AS newest
     ) AS recent WHERE members IS NOT NULL`,
    [roomNids, limit, BETWEEN_TEXTS],
  )
  return new Map(
    rooms.map(({ room_nid, members, texts }) => [room_nid, recentRows(room_nid, JSON.parse(members), texts)]),
  )
}

/** The newest events of a room as clients are sent them, oldest first. */
export interface TimelineText {
  /** The events with a comma between two; their ages are as of when they were asked for. */
  readonly json: string
  readonly events: readonly TimelineEvent[]
}

/** An event of a {@link TimelineText}. */
export type TimelineEvent = readonly [
  ...own: TextEvent,
  room_pos: number,
  state_chain: number,
  state_seq: number,
  sender: UserId,
]

/** Of these, clients are sent only what the text and these columns say. */
const USUAL = `content_place IS NOT NULL AND key_id IS NULL AND redacted_by IS NULL AND standing IS NULL AND NOT has_relations
  AND type <> 'm.room.redaction' AND stream_pos IS NULL AND current_chain IS NULL`

const FIRST_TIMELINES = `SELECT wanted.nid AS room_nid, recent.* FROM unnest($1::bigint[]) AS wanted (nid)
  CROSS JOIN LATERAL (
    SELECT bool_and(is_usual) AS is_usual,
      json_agg(CASE WHEN is_usual THEN json_build_array(event_nid, sender_nid, origin_server_ts, octet_length(written), event_id, txn_token,
        txn_id, room_pos, state_chain, state_seq, sender) ELSE ${RECENT_MEMBERS} END ORDER BY room_pos)::text AS members,
      string_agg(written, CASE WHEN is_usual THEN ',' ELSE $3 END ORDER BY room_pos) AS texts
    FROM (
      SELECT *, CASE WHEN is_usual THEN ${clientText('$4', "''", AFTER_AGE_OF_MESSAGE)} ELSE json END AS written
      FROM (
        SELECT newest.*, bool_and(${USUAL}) OVER () AS is_usual, user_id AS sender
        FROM (SELECT * FROM event WHERE room_nid = wanted.nid AND room_pos IS NOT NULL ORDER BY room_pos DESC LIMIT $2) AS newest
        JOIN matrix_user ON user_nid = sender_nid
      ) AS judged OFFSET 0 -- or else each text would be written twice
    ) AS taken
  ) AS recent WHERE members IS NOT NULL`

/**
 * The same for a first sync. Where all of a room's events are usual messages, the database writes them as clients are sent them: a third of
 * the bytes comes, and nothing is to be looked for in them.
 *
 * @param now milliseconds
 */
export async function getFirstTimelines(
  reader: Reader,
  roomNids: readonly number[],
  limit: number,
  now: number,
): Promise<Map<number, EventRow[] | TimelineText>> {
  const rooms = await reader.query<{ room_nid: number; is_usual: boolean; members: string; texts: string }>(
    FIRST_TIMELINES,
    [roomNids, limit, BETWEEN_TEXTS, now],
  )
  const found = new Map<number, EventRow[] | TimelineText>()
  for (const { room_nid, is_usual, members, texts } of rooms) {
    const events = JSON.parse(members)
    found.set(room_nid, is_usual ? { json: texts, events } : recentRows(room_nid, events, texts).reverse())
  }
  return found
}

function recentRows(room_nid: number, events: readonly RecentMembers[], texts: string): EventRow[] {
  const jsons = splitTexts(room_nid, texts, events.length)
  return events.map((event, index) => recentRow(room_nid, event, jsons[index]!))
}

function recentRow(room_nid: number, event: RecentMembers, json: string): EventRow {
  return {
    event_nid: event[0],
    room_nid,
    room_pos: event[1],
    sender_nid: event[2],
    origin_server_ts: event[3],
    notifiable: event[4],
    replaces_nid: event[10],
    redacted_by: event[11],
    txn_token: event[12],
    state_chain: event[5],
    state_seq: event[6],
    key_id: event[13],
    event_id: event[8],
    type: event[9],
    txn_id: event[17],
    standing: event[18],
    reason: event[19],
    stream_pos: event[14],
    current_chain: event[15],
    current_seq: event[16],
    auth_nids: event[20],
    auth_content: event[21],
    has_relations: event[7],
    json,
  }
}

/** A row whose text is not a part of a longer one, which would stay in memory with it. */
export function withOwnText(row: EventRow): EventRow {
  return { ...row, json: Buffer.from(row.json).toString() }
}
