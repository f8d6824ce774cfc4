import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: identity_account, identity_token

export interface IdentityTokenRow {
  readonly token_nid: number
  readonly user_id: UserId
  readonly used_at: number
}

export async function ensureIdentityAccount(tx: Tx, userId: UserId, now: number): Promise<void> {
  await tx.query('INSERT INTO identity_account (user_id, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
    userId,
    now,
  ])
}

/** Adds a token and removes the user's oldest, so that at most `keep` stay. Gives the removed ones. */
export async function insertIdentityToken(
  tx: Tx,
  token: { readonly hash: Buffer; readonly userId: UserId; readonly now: number },
  keep: number,
): Promise<number[]> {
  await tx.query('INSERT INTO identity_token (token_hash, user_id, created_at, used_at) VALUES ($1, $2, $3, $3)', [
    token.hash,
    token.userId,
    token.now,
  ])
  const removed = await tx.query<{ token_nid: number }>(
    `DELETE FROM identity_token WHERE user_id = $1 AND token_nid <= (
       SELECT token_nid FROM identity_token WHERE user_id = $1 ORDER BY token_nid DESC OFFSET $2 LIMIT 1)
     RETURNING token_nid`,
    [token.userId, keep],
  )
  return removed.map((row) => row.token_nid)
}

export async function findIdentityToken(reader: Reader, hash: Buffer): Promise<IdentityTokenRow | undefined> {
  const [row] = await reader.query<IdentityTokenRow>(
    'SELECT token_nid, user_id, used_at FROM identity_token WHERE token_hash = $1',
    [hash],
  )
  return row
}

export async function touchIdentityToken(tx: Tx, tokenNid: number, now: number): Promise<void> {
  await tx.query('UPDATE identity_token SET used_at = $2 WHERE token_nid = $1 AND used_at < $2', [tokenNid, now])
}

export async function deleteIdentityToken(tx: Tx, tokenNid: number): Promise<void> {
  await tx.query('DELETE FROM identity_token WHERE token_nid = $1', [tokenNid])
}

/** Gives the removed tokens. */
export async function deleteIdentityTokensOf(tx: Tx, userId: UserId): Promise<number[]> {
  const rows = await tx.query<{ token_nid: number }>(
    'DELETE FROM identity_token WHERE user_id = $1 RETURNING token_nid',
    [userId],
  )
  return rows.map((row) => row.token_nid)
}

export interface IdentityAccountRow {
  readonly created_at: number
  readonly tokens: number
  /** Within some minutes. */
  readonly used_at: number | null
}

export async function findIdentityAccount(reader: Reader, userId: UserId): Promise<IdentityAccountRow | undefined> {
  const [row] = await reader.query<IdentityAccountRow>(
    `SELECT a.created_at, count(t.token_nid) AS tokens, max(t.used_at) AS used_at
     FROM identity_account a LEFT JOIN identity_token t USING (user_id)
     WHERE a.user_id = $1 GROUP BY a.user_id, a.created_at`,
    [userId],
  )
  return row
}

/** Removes an account with its tokens and accepted terms. Gives the removed tokens; undefined if there is no account. */
export async function deleteIdentityAccount(tx: Tx, userId: UserId): Promise<number[] | undefined> {
  // The lock keeps others from adding a token.
  const found = await tx.query('SELECT 1 AS one FROM identity_account WHERE user_id = $1 FOR UPDATE', [userId])
  if (found.length === 0) return undefined
  const tokens = await deleteIdentityTokensOf(tx, userId)
  await tx.query('DELETE FROM identity_account WHERE user_id = $1', [userId])
  return tokens
}

/** Removes tokens that were last used before a moment. Gives how many. */
export async function forgetIdentityTokens(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM identity_token WHERE token_nid = ANY(ARRAY(
       SELECT token_nid FROM identity_token WHERE used_at < $1 LIMIT $2)) RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}
