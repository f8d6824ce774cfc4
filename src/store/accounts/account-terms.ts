import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: account, matrix_user

/** Until when an account is valid. It is unlocked if its time was over; who was locked by an operator stays locked. */
export async function setValidity(tx: Tx, userNid: number, until: number, now: number): Promise<void> {
  await tx.query(
    `UPDATE account SET valid_until = $2, is_locked = is_locked AND coalesce(valid_until > $3, true)
     WHERE user_nid = $1 AND deactivated_at IS NULL`,
    [userNid, until, now],
  )
}

/** Locks some accounts whose time is over, and gives who they are. Their end stays: renewing unlocks them. */
export function lockExpired(tx: Tx, now: number, atMost: number): Promise<{ user_nid: number; user_id: UserId }[]> {
  return tx.query(
    `UPDATE account a SET is_locked = true FROM matrix_user u
     WHERE u.user_nid = a.user_nid AND a.user_nid = ANY(ARRAY(
       SELECT user_nid FROM account
       WHERE valid_until <= $1 AND NOT is_locked AND NOT is_admin AND deactivated_at IS NULL LIMIT $2))
     RETURNING a.user_nid, u.user_id`,
    [now, atMost],
  )
}

/** Lets a user replace their cross-signing keys without authentication until a moment. */
export async function openKeys(tx: Tx, userNid: number, until: number): Promise<void> {
  await tx.query('UPDATE account SET keys_open_until = $2 WHERE user_nid = $1', [userNid, until])
}

/** Whether a user may replace their cross-signing keys without authentication. */
export async function areKeysOpen(reader: Reader, userNid: number, now: number): Promise<boolean> {
  const rows = await reader.query('SELECT 1 AS one FROM account WHERE user_nid = $1 AND keys_open_until > $2', [
    userNid,
    now,
  ])
  return rows.length > 0
}

export async function listShadowBanned(reader: Reader): Promise<number[]> {
  const rows = await reader.query<{ user_nid: number }>('SELECT user_nid FROM account WHERE is_shadow_banned')
  return rows.map(({ user_nid }) => user_nid)
}

/** Bans an account so that nobody else notices, or ends that. False if the account is deactivated. */
export async function setShadowBan(tx: Tx, userNid: number, isBanned: boolean): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE account SET is_shadow_banned = $2 WHERE user_nid = $1 AND deactivated_at IS NULL RETURNING 1 AS one`,
    [userNid, isBanned],
  )
  return rows.length > 0
}
