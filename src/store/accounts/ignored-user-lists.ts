import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: ignored_sender; read: account_data, matrix_user, event

const LISTS = `account_data WHERE room_id = '' AND type = 'm.ignored_user_list' AND NOT is_deleted`

/** The users who have a list of users to ignore, which may be empty. */
export async function listIgnoringUsers(reader: Reader): Promise<number[]> {
  const rows = await reader.query<{ user_nid: number }>(`SELECT user_nid FROM ${LISTS}`, [])
  return rows.map(({ user_nid }) => user_nid)
}

/** A user's id, and the content of their list. */
export async function findIgnoredUserList(
  reader: Reader,
  userNid: number,
): Promise<{ readonly userId: UserId; readonly content: JsonObject } | undefined> {
  const [row] = await reader.query<{ user_id: UserId; content: string }>(
    `SELECT user_id, content FROM matrix_user JOIN (SELECT user_nid, content FROM ${LISTS} AND user_nid = $1) AS list USING (user_nid)`,
    [userNid],
  )
  return row && { userId: row.user_id, content: JSON.parse(row.content) as JsonObject }
}

/**
 * Remembers that a user ignores somebody from the next event on, or does not ignore them any more.
 *
 * @param kept how many of the times are remembered that are over: the newest
 */
export async function putIgnoredSenders(
  tx: Tx,
  userNid: number,
  { added, removed }: { readonly added: readonly string[]; readonly removed: readonly string[] },
  kept: number,
): Promise<void> {
  await tx.query(
    `WITH newest AS (SELECT coalesce(max(event_nid), 0) AS nid FROM event), over AS (
       UPDATE ignored_sender s SET until_nid = newest.nid FROM newest
       WHERE s.user_nid = $1 AND s.sender_id = ANY ($2::text[]) AND s.until_nid IS NULL RETURNING s.sender_id
     )
     INSERT INTO ignored_sender (user_nid, sender_id, since_nid, until_nid)
     SELECT $1, sender_id, 0, newest.nid FROM newest, unnest($2::text[]) AS removed (sender_id)
     WHERE NOT EXISTS (SELECT FROM over WHERE over.sender_id = removed.sender_id)
     ON CONFLICT (user_nid, sender_id, since_nid) DO UPDATE SET until_nid = EXCLUDED.until_nid`,
    [userNid, removed],
  )
  await tx.query(
    `INSERT INTO ignored_sender (user_nid, sender_id, since_nid)
     SELECT $1, sender_id, (SELECT coalesce(max(event_nid), 0) FROM event) FROM unnest($2::text[]) AS added (sender_id)
     ON CONFLICT (user_nid, sender_id, since_nid) DO UPDATE SET until_nid = NULL`,
    [userNid, added],
  )
  await tx.query(
    `DELETE FROM ignored_sender WHERE ctid = ANY (ARRAY(SELECT ctid FROM ignored_sender
       WHERE user_nid = $1 AND until_nid IS NOT NULL ORDER BY until_nid DESC OFFSET $2))`,
    [userNid, kept],
  )
}
