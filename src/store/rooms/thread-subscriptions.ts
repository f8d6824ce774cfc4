import type { EventId, RoomId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: thread_subscription, room

/** A thread, as one user sees it. */
export interface UsersThread {
  readonly userNid: number
  readonly roomNid: number
  readonly rootId: EventId
}

export interface ThreadSubscriptionRow {
  readonly is_subscribed: boolean
  readonly is_automatic: boolean
  /** A timeline position of the room. */
  readonly unsubscribed_pos: number | null
}

export interface ListedThreadSubscription {
  readonly room_id: RoomId
  readonly root_id: EventId
  readonly is_subscribed: boolean
  readonly is_automatic: boolean
  readonly position: number
}

export async function findThreadSubscription(
  reader: Reader,
  { userNid, roomNid, rootId }: UsersThread,
): Promise<ThreadSubscriptionRow | undefined> {
  const [row] = await reader.query<ThreadSubscriptionRow>(
    `SELECT is_subscribed, is_automatic, unsubscribed_pos FROM thread_subscription
     WHERE user_nid = $1 AND room_nid = $2 AND root_id = $3`,
    [userNid, roomNid, rootId],
  )
  return row
}

/**
 * Subscribes a user.
 *
 * @param most the most threads that a user may have here
 * @returns false if the user has too many
 */
export async function subscribeToThread(
  tx: Tx,
  { userNid, roomNid, rootId }: UsersThread,
  isAutomatic: boolean,
  position: number,
  most: number,
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO thread_subscription (user_nid, room_nid, root_id, is_subscribed, is_automatic, position)
     SELECT $1::bigint, $2::bigint, $3::text, true, $4::boolean, $5::bigint
     WHERE (SELECT count(*) FROM thread_subscription WHERE user_nid = $1 AND (room_nid <> $2 OR root_id <> $3)) < $6::int
     ON CONFLICT (user_nid, room_nid, root_id) DO UPDATE
     SET is_subscribed = true, is_automatic = EXCLUDED.is_automatic, unsubscribed_pos = NULL, position = EXCLUDED.position
     RETURNING 1 AS one`,
    [userNid, roomNid, rootId, isAutomatic, position, most],
  )
  return rows.length > 0
}

/** Ends a subscription, if there is one. @param pos the end of the room's timeline */
export async function unsubscribeFromThread(
  tx: Tx,
  { userNid, roomNid, rootId }: UsersThread,
  pos: number,
  position: number,
): Promise<void> {
  await tx.query(
    `UPDATE thread_subscription SET is_subscribed = false, is_automatic = false, unsubscribed_pos = $4, position = $5
     WHERE user_nid = $1 AND room_nid = $2 AND root_id = $3 AND is_subscribed`,
    [userNid, roomNid, rootId, pos, position],
  )
}

/** A user's subscriptions, of which the newest change was between two positions of the ledger, the newest first. */
export function threadSubscriptionsBetween(
  reader: Reader,
  userNid: number,
  { after, upTo, limit }: { readonly after: number; readonly upTo: number; readonly limit: number },
): Promise<ListedThreadSubscription[]> {
  return reader.query(
    `SELECT room_id, root_id, is_subscribed, is_automatic, position FROM thread_subscription JOIN room USING (room_nid)
     WHERE user_nid = $1 AND position > $2 AND position <= $3 ORDER BY position DESC LIMIT $4`,
    [userNid, after, upTo, limit],
  )
}

/** Whether anybody follows a thread. */
export async function hasThreadSubscriptions(reader: Reader): Promise<boolean> {
  const rows = await reader.query('SELECT 1 AS one FROM thread_subscription WHERE is_subscribed LIMIT 1', [])
  return rows.length > 0
}

/** The users who follow a thread. */
export async function listThreadFollowers(reader: Reader, roomNid: number, rootId: string): Promise<number[]> {
  const rows = await reader.query<{ user_nid: number }>(
    'SELECT user_nid FROM thread_subscription WHERE room_nid = $1 AND root_id = $2 AND is_subscribed',
    [roomNid, rootId],
  )
  return rows.map(({ user_nid }) => user_nid)
}
