import type { Reader, Tx } from '../db/db.ts'
import { deleteSearchTexts } from './search.ts'

// Tables: event, client_txn, highlight, unread_event, thread_event, event_gap, event_relation, thread; read: room, receipt, room_member, account

/** An event in the part of a timeline that is to be removed. */
export interface OldEvent {
  readonly event_nid: number
  readonly room_pos: number
  /** Whether a user of this server sent it. */
  readonly is_local: boolean
  /** State, a forward extremity, or a redaction of something that may still come: it stays as it is. */
  readonly is_needed: boolean
  /** Somebody has read up to it: its place stays, and its content goes. */
  readonly is_marked: boolean
  readonly json: string
}

/** The next events of a timeline with `after < room_pos <= upTo`, the oldest first. */
export function oldEvents(
  reader: Reader,
  roomNid: number,
  { after, upTo, limit }: { readonly after: number | null; readonly upTo: number; readonly limit: number },
): Promise<OldEvent[]> {
  return reader.query<OldEvent>(
    `SELECT e.event_nid, e.room_pos, EXISTS (SELECT FROM account a WHERE a.user_nid = e.sender_nid) AS is_local,
       e.key_id IS NOT NULL OR e.event_nid = ANY(r.extremities)
         OR EXISTS (SELECT FROM early_redaction x WHERE x.room_nid = e.room_nid AND x.redaction_nid = e.event_nid) AS is_needed,
       EXISTS (SELECT FROM receipt p WHERE p.room_nid = e.room_nid AND p.event_nid = e.event_nid) AS is_marked,
       CASE WHEN e.key_id IS NULL THEN e.json ELSE '' END AS json
     FROM event e JOIN room r USING (room_nid)
     WHERE e.room_nid = $1 AND ($2::bigint IS NULL OR e.room_pos > $2) AND e.room_pos <= $3
     ORDER BY e.room_pos LIMIT $4`,
    [roomNid, after, upTo, limit],
  )
}

/** The newest event of each local member up to a position: having sent it, they have read up to there. */
export async function newestOwnEvents(reader: Reader, roomNid: number, upTo: number): Promise<number[]> {
  const rows = await reader.query<{ event_nid: number }>(
    `SELECT own.event_nid FROM room_member m JOIN account USING (user_nid)
     CROSS JOIN LATERAL (SELECT event_nid FROM event e WHERE e.room_nid = m.room_nid AND e.sender_nid = m.user_nid
       AND e.room_pos <= $2 ORDER BY e.room_pos DESC LIMIT 1) own
     WHERE m.room_nid = $1`,
    [roomNid, upTo],
  )
  return rows.map(({ event_nid }) => event_nid)
}

async function dropPlaces(
  tx: Tx,
  table: 'unread_event' | 'thread_event',
  roomNid: number,
  eventNids: readonly number[],
): Promise<void> {
  await tx.query(
    `DELETE FROM ${table} u USING event e WHERE e.room_nid = $1 AND e.event_nid = ANY($2::bigint[])
     AND u.room_nid = e.room_nid AND u.room_pos = e.room_pos`,
    [roomNid, eventNids],
  )
}

/** Removes events and what names them. @param recent older transaction ids are removed already */
export async function removeEvents(
  tx: Tx,
  roomNid: number,
  eventNids: readonly number[],
  recent: number,
): Promise<void> {
  await tx.query('DELETE FROM highlight WHERE room_nid = $1 AND event_nid = ANY($2::bigint[])', [roomNid, eventNids])
  await deleteSearchTexts(tx, eventNids)
  await dropPlaces(tx, 'unread_event', roomNid, eventNids)
  await dropPlaces(tx, 'thread_event', roomNid, eventNids)
  await tx.query('DELETE FROM event_gap WHERE room_nid = $1 AND event_nid = ANY($2::bigint[])', [roomNid, eventNids])
  const rows = await tx.query<{ event_nid: number; is_recent: boolean }>(
    `DELETE FROM event WHERE event_nid = ANY($1::bigint[])
     RETURNING event_nid, txn_token IS NOT NULL AND origin_server_ts > $2 AS is_recent`,
    [eventNids, recent],
  )
  const sent = rows.filter(({ is_recent }) => is_recent).map(({ event_nid }) => event_nid)
  if (sent.length > 0) await tx.query('DELETE FROM client_txn WHERE event_nid = ANY($1::bigint[])', [sent])
}

/** Replaces the JSON of events, so that they mention nobody and relate to nothing. */
export async function emptyEvents(
  tx: Tx,
  roomNid: number,
  events: readonly { readonly event_nid: number; readonly json: string }[],
): Promise<void> {
  if (events.length === 0) return
  const nids = events.map(({ event_nid }) => event_nid)
  await deleteSearchTexts(tx, nids)
  await tx.query('DELETE FROM highlight WHERE room_nid = $1 AND event_nid = ANY($2::bigint[])', [roomNid, nids])
  await dropPlaces(tx, 'unread_event', roomNid, nids)
  await tx.query('DELETE FROM event_relation WHERE room_nid = $1 AND child_nid = ANY($2::bigint[])', [roomNid, nids])
  await tx.query(
    `UPDATE event SET json = emptied.json, txn_id = NULL, auth_content = NULL, content_place = NULL
     FROM unnest($1::bigint[], $2::text[]) AS emptied (nid, json) WHERE event_nid = emptied.nid`,
    [nids, events.map(({ json }) => json)],
  )
}

/** Removes some soft-failed and rejected messages from before a number. Gives how many; 0 at the end. */
export async function removeExcluded(
  tx: Tx,
  roomNid: number,
  { below, withLocal, limit }: { readonly below: number; readonly withLocal: boolean; readonly limit: number },
): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM event WHERE event_nid = ANY(ARRAY(
       SELECT event_nid FROM event e WHERE room_nid = $1 AND room_pos IS NULL AND standing IN ('soft-failed', 'rejected')
         AND key_id IS NULL AND auth_nids IS NULL AND event_nid < $2
         AND ($3 OR NOT EXISTS (SELECT FROM account a WHERE a.user_nid = e.sender_nid))
         AND NOT EXISTS (SELECT FROM room r WHERE r.room_nid = $1 AND e.event_nid = ANY(r.extremities)) LIMIT $4))
     RETURNING 1 AS one`,
    [roomNid, below, withLocal, limit],
  )
  return rows.length
}

/** Removes some relations whose events are gone. Gives how many; 0 at the end. */
export async function removeRelations(tx: Tx, roomNid: number, upTo: number, limit: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM event_relation WHERE ctid = ANY(ARRAY(
       SELECT ctid FROM event_relation r WHERE room_nid = $1 AND pos <= $2
         AND NOT EXISTS (SELECT FROM event WHERE event_nid = r.child_nid) LIMIT $3)) RETURNING 1 AS one`,
    [roomNid, upTo, limit],
  )
  return rows.length
}

/** Forgets threads whose first event is gone. */
export async function forgetThreads(tx: Tx, roomNid: number): Promise<void> {
  await tx.query(
    `DELETE FROM thread t WHERE room_nid = $1
     AND NOT EXISTS (SELECT FROM event e WHERE e.room_nid = $1 AND e.event_id = t.root_id)`,
    [roomNid],
  )
}

/** Brings the counts of threads up to date. */
export async function recountThreads(tx: Tx, roomNid: number): Promise<void> {
  await tx.query(
    `UPDATE thread t SET replies = counted.replies, latest_pos = counted.latest FROM (
       SELECT root_id, count(r.pos)::int AS replies, max(r.pos) AS latest FROM thread LEFT JOIN event_relation r
         ON r.room_nid = $1 AND r.target_id = root_id AND r.rel_type = 'm.thread' WHERE thread.room_nid = $1 GROUP BY root_id
     ) counted WHERE t.room_nid = $1 AND t.root_id = counted.root_id AND t.replies <> counted.replies`,
    [roomNid],
  )
}
