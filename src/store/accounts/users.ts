import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: matrix_user

/** The numbers of those users that have been seen before. */
export async function findUserNids(reader: Reader, userIds: readonly UserId[]): Promise<Map<UserId, number>> {
  const rows = await reader.query<{ user_nid: number; user_id: UserId }>(
    'SELECT user_nid, user_id FROM matrix_user WHERE user_id = ANY($1::text[])',
    [userIds],
  )
  return new Map(rows.map((row) => [row.user_id, row.user_nid]))
}

/** The users' numbers; those never seen before get one. */
export async function internUsers(tx: Tx, userIds: readonly UserId[]): Promise<Map<UserId, number>> {
  const known = await findUserNids(tx, userIds)
  // Always in the same order, so that two transactions cannot deadlock.
  const missing = [...new Set(userIds)].filter((userId) => !known.has(userId)).sort()
  if (missing.length === 0) return known
  const rows = await tx.query<{ user_nid: number; user_id: UserId }>(
    `INSERT INTO matrix_user (user_id) SELECT unnest($1::text[])
     ON CONFLICT (user_id) DO UPDATE SET user_id = EXCLUDED.user_id
     RETURNING user_nid, user_id`,
    [missing],
  )
  for (const row of rows) known.set(row.user_id, row.user_nid)
  return known
}

export async function userIdsOf(reader: Reader, userNids: readonly number[]): Promise<Map<number, UserId>> {
  const rows = await reader.query<{ user_nid: number; user_id: UserId }>(
    'SELECT user_nid, user_id FROM matrix_user WHERE user_nid = ANY($1::bigint[])',
    [userNids],
  )
  return new Map(rows.map((row) => [row.user_nid, row.user_id]))
}
