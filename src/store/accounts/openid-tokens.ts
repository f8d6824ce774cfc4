import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: openid_token, account, matrix_user

export async function insertOpenIdToken(
  tx: Tx,
  token: { readonly hash: Buffer; readonly userNid: number; readonly expiresAt: number },
): Promise<void> {
  await tx.query('INSERT INTO openid_token (token_hash, user_nid, expires_at) VALUES ($1, $2, $3)', [
    token.hash,
    token.userNid,
    token.expiresAt,
  ])
}

/** The user of a token; undefined once it has expired, or while the account is deactivated, locked or suspended. */
export async function findOpenIdUser(reader: Reader, hash: Buffer, now: number): Promise<UserId | undefined> {
  const [row] = await reader.query<{ user_id: UserId }>(
    `SELECT u.user_id FROM openid_token t JOIN account a USING (user_nid) JOIN matrix_user u USING (user_nid)
     WHERE t.token_hash = $1 AND t.expires_at > $2 AND a.deactivated_at IS NULL
       AND NOT a.is_locked AND NOT a.is_suspended`,
    [hash, now],
  )
  return row?.user_id
}

/** Gives how many were removed. */
export async function forgetOpenIdTokens(tx: Tx, now: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM openid_token WHERE token_hash = ANY(ARRAY(
       SELECT token_hash FROM openid_token WHERE expires_at <= $1 LIMIT $2)) RETURNING 1 AS one`,
    [now, atMost],
  )
  return rows.length
}
