import type { Reader, Tx } from '../db/db.ts'

// Tables: appservice_queue; read: event, room_member, account, matrix_user, state_key, state_change

export interface QueueRow {
  readonly appservice_id: string
  readonly position: number
  readonly txn_id: number
  readonly body: string | null
  readonly up_to: number | null
  readonly failures: number
  readonly retry_at: number
  readonly news_position: number
  readonly news_up_to: number | null
}

export function getQueues(reader: Reader): Promise<QueueRow[]> {
  return reader.query(
    'SELECT appservice_id, position, txn_id, body, up_to, failures, retry_at, news_position, news_up_to FROM appservice_queue',
  )
}

/** Writes the positions of services, all in one statement. */
export async function saveQueues(tx: Tx, rows: readonly QueueRow[]): Promise<void> {
  await tx.query(
    `INSERT INTO appservice_queue
       (appservice_id, position, txn_id, body, up_to, failures, retry_at, news_position, news_up_to)
     SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::integer[], $7::bigint[],
       $8::bigint[], $9::bigint[])
     ON CONFLICT (appservice_id) DO UPDATE SET position = excluded.position, txn_id = excluded.txn_id,
       body = excluded.body, up_to = excluded.up_to, failures = excluded.failures, retry_at = excluded.retry_at,
       news_position = excluded.news_position, news_up_to = excluded.news_up_to`,
    [
      rows.map((row) => row.appservice_id),
      rows.map((row) => row.position),
      rows.map((row) => row.txn_id),
      rows.map((row) => row.body),
      rows.map((row) => row.up_to),
      rows.map((row) => row.failures),
      rows.map((row) => row.retry_at),
      rows.map((row) => row.news_position),
      rows.map((row) => row.news_up_to),
    ],
  )
}

export interface StreamedEvent {
  readonly event_nid: number
  readonly room_nid: number
  readonly position: number
}

/** The next events of the stream after a position, in order. Backfilled events are left out. */
export function getStream(reader: Reader, after: number, limit: number): Promise<StreamedEvent[]> {
  return reader.query(
    `(SELECT event_nid, room_nid, event_nid AS position FROM event
      WHERE event_nid > $1 AND stream_pos IS NULL AND room_pos > 0 ORDER BY event_nid LIMIT $2)
     UNION ALL
     (SELECT event_nid, room_nid, stream_pos FROM event
      WHERE stream_pos > $1 AND room_pos > 0 ORDER BY stream_pos LIMIT $2)
     ORDER BY position LIMIT $2`,
    [after, limit],
  )
}

export interface LocalMembership {
  readonly room_nid: number
  readonly user_id: string
  readonly membership: string
  readonly event_nid: number
}

/** The memberships, past ones included, of this server's users in these rooms. */
export function getLocalMemberships(reader: Reader, roomNids: readonly number[]): Promise<LocalMembership[]> {
  return reader.query(
    `SELECT m.room_nid, u.user_id, m.membership, m.event_nid
     FROM room_member m JOIN account USING (user_nid) JOIN matrix_user u USING (user_nid) WHERE m.room_nid = ANY($1)`,
    [roomNids],
  )
}

/** The membership event of a user that was in force at an event; undefined before the first. */
export async function getMembershipEventAt(
  reader: Reader,
  roomNid: number,
  userId: string,
  upTo: number,
): Promise<number | undefined> {
  const [row] = await reader.query<{ event_nid: number }>(
    `SELECT c.event_nid FROM state_key k JOIN state_change c USING (room_nid, key_id)
     WHERE k.room_nid = $1 AND k.type = 'm.room.member' AND k.state_key = $2 AND c.event_nid > 0 AND c.event_nid <= $3
     ORDER BY c.event_nid DESC LIMIT 1`,
    [roomNid, userId, upTo],
  )
  return row?.event_nid
}
