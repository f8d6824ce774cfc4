import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: account, newcomer, matrix_user

/** Locks a new account until an operator has let it in. */
export async function holdForApproval(tx: Tx, userNid: number): Promise<void> {
  await tx.query('UPDATE account SET awaits_approval = true, is_locked = true WHERE user_nid = $1', [userNid])
}

export interface WaitingAccount {
  readonly user_id: UserId
  readonly created_at: number
}

/** A page of the accounts that wait, those that wait longest first, and how many there are. */
export async function listWaiting(
  reader: Reader,
  page: { readonly from: number; readonly limit: number },
): Promise<{ readonly waiting: readonly WaitingAccount[]; readonly total: number }> {
  const chosen = 'awaits_approval AND deactivated_at IS NULL'
  const [waiting, [count]] = await Promise.all([
    reader.query<WaitingAccount>(
      `SELECT user_id, created_at FROM account JOIN matrix_user USING (user_nid) WHERE ${chosen}
       ORDER BY created_at, user_nid OFFSET $1 LIMIT $2`,
      [page.from, page.limit],
    ),
    reader.query<{ total: number }>(`SELECT count(*)::int AS total FROM account WHERE ${chosen}`),
  ])
  return { waiting, total: count?.total ?? 0 }
}

/** Decides about an account that waits, and lets it in if that is the decision. False if it does not wait (any more). */
export async function decideApproval(tx: Tx, userNid: number, isLetIn: boolean): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE account SET awaits_approval = false, is_locked = is_locked AND NOT $2
     WHERE user_nid = $1 AND awaits_approval AND deactivated_at IS NULL RETURNING 1 AS one`,
    [userNid, isLetIn],
  )
  if (rows.length > 0) await tx.query('UPDATE newcomer SET due_at = 0 WHERE user_nid = $1', [userNid])
  return rows.length > 0
}
