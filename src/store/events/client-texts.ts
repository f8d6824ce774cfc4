import type { EventId } from '../../core/ids.ts'

/** An event in a text that the database wrote as clients are sent it: what they are not sent. */
export type TextEvent = readonly [
  event_nid: number,
  sender_nid: number,
  origin_server_ts: number,
  /** Bytes of its text. */
  bytes: number,
  event_id: EventId,
  txn_token: number | null,
  txn_id: string | null,
]

/** What follows the age of a usual message, for who was in the room. */
export const AFTER_AGE_OF_MESSAGE = ',"membership":"join"}}'
/** The same of state that is shown beside the timeline. */
export const AFTER_AGE_OF_STATE = '}}'

/** The content of an event that has a `content_place`, as text. */
export const CONTENT = `convert_from(substr(convert_to(json, 'UTF8'), content_place >> 16, content_place & 65535), 'UTF8')`

/**
 * An event that has a `content_place`, as clients are sent it: SQL over the columns of `event`, and `sender`, the sender's id.
 *
 * @param now the parameter with the time, in milliseconds, as of which its age is
 * @param stateKey SQL for the member of a state event, or for none
 */
export const clientText = (now: string, stateKey: string, afterAge: string): string =>
  `'{"content":' || ${CONTENT} || ',"event_id":"' || event_id || '","origin_server_ts":' || origin_server_ts || ',"sender":"' || sender
   || '"' || ${stateKey} || ',"type":"' || type || '","unsigned":{"age":' || greatest(0, ${now}::bigint - origin_server_ts) || '${afterAge}'`
