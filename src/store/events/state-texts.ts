import type { JsonValue } from '../../core/json.ts'
import type { Reader } from '../db/db.ts'
import { AFTER_AGE_OF_STATE, CONTENT, clientText, type TextEvent } from './client-texts.ts'

// Tables: read: event, matrix_user, state_key

/** State of a room as clients are sent it, in the order of the events' numbers. */
export interface StateText {
  /** The events with a comma between two; their ages are as of when they were asked for. */
  readonly json: string
  readonly events: readonly StateTextEvent[]
  /** What may name the room, with the empty state key. */
  readonly names: readonly (readonly [type: string, content: JsonValue])[]
}

/** An event of a {@link StateText}. */
export type StateTextEvent = readonly [...own: TextEvent, has_relations: boolean]

const NAMES = "type IN ('m.room.name', 'm.room.canonical_alias') AND state_key = ''"

const STATE_TEXTS = `SELECT room_nid, json_agg(json_build_array(event_nid, sender_nid, origin_server_ts, octet_length(written), event_id,
      txn_token, txn_id, has_relations) ORDER BY event_nid)::text AS members,
    string_agg(written, ',' ORDER BY event_nid) AS texts, json_agg(json_build_array(type, content::json)) FILTER (WHERE ${NAMES})::text AS names
  FROM (
    SELECT *, CASE WHEN content_place IS NOT NULL THEN ${clientText('$3', `',"state_key":"' || state_key || '"'`, AFTER_AGE_OF_STATE)} END AS written,
      CASE WHEN content_place IS NOT NULL AND ${NAMES} THEN ${CONTENT} END AS content
    FROM (
      SELECT event.*, state_key, user_id AS sender FROM event JOIN state_key USING (room_nid, key_id)
      JOIN matrix_user ON user_nid = sender_nid WHERE event_nid = ANY ($1::bigint[])
    ) AS wanted OFFSET 0 -- or else each text would be written twice
  ) AS taken GROUP BY room_nid
  HAVING bool_and(content_place IS NOT NULL AND replaces_nid IS NULL AND redacted_by IS NULL AND standing IS NULL)
    AND sum(octet_length(json)) <= $2`

/**
 * State events by their rooms, as clients are sent them. Left out are rooms with an event of which clients are sent more than its text and
 * columns say, and rooms whose events have more than `maxBytes` bytes.
 *
 * @param now milliseconds
 */
export async function getStateTexts(
  reader: Reader,
  eventNids: readonly number[],
  maxBytes: number,
  now: number,
): Promise<Map<number, StateText>> {
  const rooms = await reader.query<{ room_nid: number; members: string; texts: string; names: string | null }>(
    STATE_TEXTS,
    [eventNids, maxBytes, now],
  )
  const found = new Map<number, StateText>()
  for (const { room_nid, members, texts, names } of rooms)
    found.set(room_nid, { json: texts, events: JSON.parse(members), names: names === null ? [] : JSON.parse(names) })
  return found
}
