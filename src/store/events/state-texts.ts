import type { EventId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'
import { BETWEEN_TEXTS, splitTexts } from './joined-texts.ts'

// Tables: read: event

/** A state event of which the text says all that clients are sent, but for its age. */
export interface StateText {
  readonly nid: number
  readonly senderNid: number
  readonly ts: number
  readonly id: EventId
  readonly type: string
  readonly txnToken: number | null
  readonly txnId: string | null
  readonly hasRelations: boolean
  readonly json: string
}

type Members = readonly [
  nid: number,
  senderNid: number,
  ts: number,
  id: EventId,
  type: string,
  txnToken: number | null,
  txnId: string | null,
  hasRelations: boolean,
]

/**
 * State events by their rooms, in the order of their numbers: one row for each room. Left out are rooms with an event that replaced another
 * or was redacted, and rooms whose events have more than `maxBytes` bytes.
 */
export async function getStateTexts(
  reader: Reader,
  eventNids: readonly number[],
  maxBytes: number,
): Promise<Map<number, StateText[]>> {
  const rooms = await reader.query<{ room_nid: number; members: string; texts: string }>(
    `SELECT room_nid, json_agg(json_build_array(event_nid, sender_nid, origin_server_ts, event_id, type, txn_token, txn_id, has_relations)
         ORDER BY event_nid)::text AS members,
       string_agg(json, $3 ORDER BY event_nid) AS texts
     FROM event WHERE event_nid = ANY ($1::bigint[]) GROUP BY room_nid
     HAVING bool_and(replaces_nid IS NULL AND redacted_by IS NULL AND standing IS NULL) AND sum(octet_length(json)) <= $2`,
    [eventNids, maxBytes, BETWEEN_TEXTS],
  )
  return new Map(
    rooms.map(({ room_nid, members, texts }) => {
      const events = JSON.parse(members) as Members[]
      const jsons = splitTexts(room_nid, texts, events.length)
      return [room_nid, events.map((event, index) => stateText(event, jsons[index]!))]
    }),
  )
}

function stateText([nid, senderNid, ts, id, type, txnToken, txnId, hasRelations]: Members, json: string): StateText {
  return { nid, senderNid, ts, id, type, txnToken, txnId, hasRelations, json }
}
