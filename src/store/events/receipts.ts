import type { EventId, UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: receipt, event, matrix_user

export type ReceiptKind = 'm.read' | 'm.read.private'

export interface ReceiptRow {
  readonly room_nid: number
  readonly user_id: UserId
  readonly kind: ReceiptKind
  /** '' for an unthreaded receipt. */
  readonly thread_id: string
  readonly event_id: EventId
  readonly ts: number
}

/**
 * The receipts in rooms after ledger position `after` and up to `upTo`: everybody's public ones and the user's own private ones. A receipt
 * in a thread is left out where the same user's receipt for the whole room is at the same event (MSC4102).
 */
export function receiptsBetween(
  reader: Reader,
  roomNids: readonly number[],
  userNid: number,
  after: number,
  upTo: number,
): Promise<ReceiptRow[]> {
  return reader.query<ReceiptRow>(
    `SELECT r.room_nid, user_id, kind, thread_id, event_id, ts
     FROM receipt r JOIN matrix_user USING (user_nid) JOIN event USING (event_nid)
     WHERE r.room_nid = ANY($1::bigint[]) AND position > $3 AND position <= $4 AND (kind = 'm.read' OR user_nid = $2)
     AND NOT (thread_id <> '' AND EXISTS (SELECT FROM receipt w WHERE w.room_nid = r.room_nid AND w.user_nid = r.user_nid
       AND w.kind = r.kind AND w.thread_id = '' AND w.event_nid = r.event_nid))
     ORDER BY position`,
    [roomNids, userNid, after, upTo],
  )
}

/**
 * For readers to whom rooms are new: their own receipts, and of the newest receipts of others those at some events. As with
 * `receiptsBetween`.
 *
 * @param searched how many of the newest receipts of a room are looked through
 */
export function receiptsToBegin(
  reader: Reader,
  roomNids: readonly number[],
  userNid: number,
  at: { readonly eventNids: readonly number[]; readonly upTo: number; readonly searched: number },
): Promise<ReceiptRow[]> {
  return reader.query<ReceiptRow>(
    `SELECT r.room_nid, user_id, kind, thread_id, event_id, ts FROM unnest($1::bigint[]) AS wanted (nid) CROSS JOIN LATERAL (
       (SELECT * FROM receipt own WHERE own.room_nid = wanted.nid AND user_nid = $2 AND position <= $4)
       UNION
       (SELECT * FROM (SELECT * FROM receipt theirs WHERE theirs.room_nid = wanted.nid AND position <= $4 ORDER BY position DESC LIMIT $5) newest
        WHERE event_nid = ANY ($3::bigint[]) AND kind = 'm.read')) r
     JOIN matrix_user USING (user_nid) JOIN event USING (event_nid)
     WHERE NOT (thread_id <> '' AND EXISTS (SELECT FROM receipt w WHERE w.room_nid = r.room_nid AND w.user_nid = r.user_nid
       AND w.kind = r.kind AND w.thread_id = '' AND w.event_nid = r.event_nid))
     ORDER BY position`,
    [roomNids, userNid, at.eventNids, at.upTo, at.searched],
  )
}

/** The timeline positions of a user's receipts in a thread and in the whole room, by thread id. */
export async function receiptPositions(
  reader: Reader,
  receipt: {
    readonly roomNid: number
    readonly userNid: number
    readonly kind: ReceiptKind
    readonly threadId: string
  },
): Promise<ReadonlyMap<string, number>> {
  const rows = await reader.query<{ thread_id: string; room_pos: number }>(
    `SELECT thread_id, room_pos FROM receipt r JOIN event USING (event_nid)
     WHERE r.room_nid = $1 AND user_nid = $2 AND kind = $3 AND thread_id IN ('', $4)`,
    [receipt.roomNid, receipt.userNid, receipt.kind, receipt.threadId],
  )
  return new Map(rows.map(({ thread_id, room_pos }) => [thread_id, room_pos]))
}

/** Writes a receipt unless it would move one backwards. */
export async function putReceipt(
  tx: Tx,
  receipt: {
    readonly roomNid: number
    readonly userNid: number
    readonly kind: ReceiptKind
    readonly threadId: string
    readonly eventNid: number
    readonly eventPos: number
    readonly ts: number
    readonly position: number
  },
): Promise<void> {
  await tx.query(
    `INSERT INTO receipt (room_nid, user_nid, kind, thread_id, event_nid, ts, position) VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (room_nid, user_nid, kind, thread_id)
     DO UPDATE SET event_nid = EXCLUDED.event_nid, ts = EXCLUDED.ts, position = EXCLUDED.position
     WHERE (SELECT room_pos FROM event WHERE event.event_nid = receipt.event_nid) < $8`,
    [
      receipt.roomNid,
      receipt.userNid,
      receipt.kind,
      receipt.threadId,
      receipt.eventNid,
      receipt.ts,
      receipt.position,
      receipt.eventPos,
    ],
  )
}

/** Whether a user's receipt is at or after the last message of another user in a room. */
export async function hasReadAll(
  reader: Reader,
  { roomNid, userNid, senderNid }: { readonly roomNid: number; readonly userNid: number; readonly senderNid: number },
): Promise<boolean> {
  const [row] = await reader.query<{ has_read: boolean }>(
    `SELECT coalesce((SELECT max(room_pos) FROM event WHERE room_nid = $1 AND sender_nid = $3 AND type = 'm.room.message'), 0)
       <= coalesce((SELECT max(room_pos) FROM receipt r JOIN event USING (event_nid) WHERE r.room_nid = $1 AND user_nid = $2), 0)
       AS has_read`,
    [roomNid, userNid, senderNid],
  )
  return row!.has_read
}
