import type { Reader, Tx } from './db.ts'

// Table: registration_token

const USABLE = '(uses_allowed IS NULL OR uses < uses_allowed) AND (expires_at IS NULL OR expires_at > $1)'

/** Whether any token could be used now. */
export async function hasUsableRegistrationToken(reader: Reader, now: number): Promise<boolean> {
  return (await reader.query(`SELECT 1 AS one FROM registration_token WHERE ${USABLE} LIMIT 1`, [now])).length > 0
}

export async function isUsableRegistrationToken(reader: Reader, token: string, now: number): Promise<boolean> {
  const rows = await reader.query(`SELECT 1 AS one FROM registration_token WHERE ${USABLE} AND token = $2`, [
    now,
    token,
  ])
  return rows.length > 0
}

/** Counts one use; false when the token may not be used (any more). */
export async function useRegistrationToken(tx: Tx, token: string, now: number): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE registration_token SET uses = uses + 1 WHERE ${USABLE} AND token = $2 RETURNING token`,
    [now, token],
  )
  return rows.length === 1
}

export async function insertRegistrationToken(
  tx: Tx,
  token: {
    readonly token: string
    readonly usesAllowed: number | undefined
    readonly createdAt: number
    readonly expiresAt: number | undefined
  },
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO registration_token (token, uses_allowed, created_at, expires_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (token) DO NOTHING RETURNING token`,
    [token.token, token.usesAllowed ?? null, token.createdAt, token.expiresAt ?? null],
  )
  return rows.length === 1
}
