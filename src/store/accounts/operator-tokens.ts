import type { Reader, Tx } from '../db/db.ts'

// Tables: operator_token, spent_nonce

export async function insertOperatorToken(tx: Tx, hash: Buffer, expiresAt: number): Promise<void> {
  await tx.query('INSERT INTO operator_token (token_hash, expires_at) VALUES ($1, $2)', [hash, expiresAt])
}

export async function deleteOperatorToken(tx: Tx, hash: Buffer): Promise<void> {
  await tx.query('DELETE FROM operator_token WHERE token_hash = $1', [hash])
}

export async function isOperatorToken(reader: Reader, hash: Buffer, now: number): Promise<boolean> {
  const rows = await reader.query('SELECT 1 AS one FROM operator_token WHERE token_hash = $1 AND expires_at > $2', [
    hash,
    now,
  ])
  return rows.length === 1
}

/** Gives how many were removed. */
export async function forgetOperatorTokens(tx: Tx, now: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM operator_token WHERE token_hash = ANY(ARRAY(
       SELECT token_hash FROM operator_token WHERE expires_at <= $1 LIMIT $2)) RETURNING 1 AS one`,
    [now, atMost],
  )
  return rows.length
}

/** False when it was spent before. */
export async function spendNonce(tx: Tx, nonce: string, expiresAt: number): Promise<boolean> {
  const rows = await tx.query(
    'INSERT INTO spent_nonce (nonce, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1 AS one',
    [nonce, expiresAt],
  )
  return rows.length === 1
}

/** Gives how many were removed. */
export async function forgetNonces(tx: Tx, now: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM spent_nonce WHERE nonce = ANY(ARRAY(
       SELECT nonce FROM spent_nonce WHERE expires_at <= $1 LIMIT $2)) RETURNING 1 AS one`,
    [now, atMost],
  )
  return rows.length
}
