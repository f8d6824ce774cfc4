import type { UserId } from '../../core/ids.ts'
import type { Tx } from '../db/db.ts'

// Tables: login_token, account, matrix_user

export async function insertLoginToken(
  tx: Tx,
  token: {
    readonly hash: Buffer
    readonly userNid: number
    readonly expiresAt: number
    /** When the user proved who they are; undefined if that is not known. */
    readonly provenAt: number | undefined
  },
): Promise<void> {
  await tx.query('INSERT INTO login_token (token_hash, user_nid, expires_at, proven_at) VALUES ($1, $2, $3, $4)', [
    token.hash,
    token.userNid,
    token.expiresAt,
    token.provenAt ?? null,
  ])
}

export interface LoginTokenOwner {
  readonly user_nid: number
  readonly user_id: UserId
  readonly deactivated_at: number | null
  readonly is_locked: boolean
  readonly proven_at: number | null
}

/** Uses up a token and gives its user; if several callers try at once, one gets it. */
export async function takeLoginToken(tx: Tx, hash: Buffer, now: number): Promise<LoginTokenOwner | undefined> {
  const [row] = await tx.query<LoginTokenOwner>(
    `WITH taken AS (DELETE FROM login_token WHERE token_hash = $1 AND expires_at > $2 RETURNING user_nid, proven_at)
     SELECT user_nid, user_id, deactivated_at, is_locked, proven_at
     FROM taken JOIN account USING (user_nid) JOIN matrix_user USING (user_nid)`,
    [hash, now],
  )
  return row
}

export async function deleteLoginTokensOf(tx: Tx, userNid: number): Promise<void> {
  await tx.query('DELETE FROM login_token WHERE user_nid = $1', [userNid])
}

/** Gives how many were removed. */
export async function forgetLoginTokens(tx: Tx, now: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM login_token WHERE token_hash = ANY(ARRAY(
       SELECT token_hash FROM login_token WHERE expires_at <= $1 LIMIT $2)) RETURNING 1 AS one`,
    [now, atMost],
  )
  return rows.length
}
