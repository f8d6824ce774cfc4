import type { ServerName, UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: held_receipt

export interface HeldReceiptRow {
  readonly user_id: UserId
  readonly thread_id: string
  readonly origin: ServerName
  readonly json: string
}

/** Keeps the newest receipt of each user and thread. Keeps none if the room or the server would have too many. */
export async function holdReceipts(
  tx: Tx,
  { roomNid, origin }: { readonly roomNid: number; readonly origin: ServerName },
  rows: readonly Pick<HeldReceiptRow, 'user_id' | 'thread_id' | 'json'>[],
  atMost: { readonly ofRoom: number; readonly ofServer: number },
): Promise<void> {
  await tx.query(
    `INSERT INTO held_receipt (room_nid, origin, user_id, thread_id, json)
     SELECT $1, $2, user_id, thread_id, json FROM unnest($3::text[], $4::text[], $5::text[]) AS given (user_id, thread_id, json)
     WHERE (SELECT count(*) < $6 AND count(*) FILTER (WHERE origin = $2) < $7 FROM held_receipt WHERE room_nid = $1)
     ON CONFLICT (room_nid, user_id, thread_id) DO UPDATE SET json = EXCLUDED.json`,
    [
      roomNid,
      origin,
      rows.map(({ user_id }) => user_id),
      rows.map(({ thread_id }) => thread_id),
      rows.map(({ json }) => json),
      atMost.ofRoom,
      atMost.ofServer,
    ],
  )
}

export function getHeldReceipts(reader: Reader, roomNid: number, limit: number): Promise<HeldReceiptRow[]> {
  return reader.query(
    'SELECT user_id, thread_id, origin, json FROM held_receipt WHERE room_nid = $1 ORDER BY user_id, thread_id LIMIT $2',
    [roomNid, limit],
  )
}

export async function roomsWithHeldReceipts(reader: Reader): Promise<Set<number>> {
  const rows = await reader.query<{ room_nid: number }>('SELECT DISTINCT room_nid FROM held_receipt')
  return new Set(rows.map(({ room_nid }) => room_nid))
}

/** Removes some, unless a newer one took its place. */
export async function removeHeldReceipts(tx: Tx, roomNid: number, rows: readonly HeldReceiptRow[]): Promise<void> {
  await tx.query(
    `DELETE FROM held_receipt USING unnest($2::text[], $3::text[], $4::text[]) AS taken (user_id, thread_id, json)
     WHERE room_nid = $1 AND held_receipt.user_id = taken.user_id AND held_receipt.thread_id = taken.thread_id
       AND held_receipt.json = taken.json`,
    [roomNid, rows.map(({ user_id }) => user_id), rows.map(({ thread_id }) => thread_id), rows.map(({ json }) => json)],
  )
}
