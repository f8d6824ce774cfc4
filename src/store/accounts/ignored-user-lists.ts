import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Reader } from '../db/db.ts'

// Tables: account_data, matrix_user

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
