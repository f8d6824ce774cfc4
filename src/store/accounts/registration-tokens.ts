import type { Reader, Tx } from '../db/db.ts'

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

export interface RegistrationTokenRow {
  readonly token: string
  readonly uses_allowed: number | null
  readonly uses: number
  readonly expires_at: number | null
}

const COLUMNS = 'token, uses_allowed, uses, expires_at'

/** Those that could be used now, those that could not, or (undefined) all. */
export function listRegistrationTokens(
  reader: Reader,
  now: number,
  isUsable: boolean | undefined,
): Promise<RegistrationTokenRow[]> {
  return reader.query<RegistrationTokenRow>(
    `SELECT ${COLUMNS} FROM registration_token WHERE $2::boolean IS NULL OR (${USABLE}) = $2 ORDER BY created_at, token`,
    [now, isUsable ?? null],
  )
}

export async function findRegistrationToken(reader: Reader, token: string): Promise<RegistrationTokenRow | undefined> {
  const [row] = await reader.query<RegistrationTokenRow>(`SELECT ${COLUMNS} FROM registration_token WHERE token = $1`, [
    token,
  ])
  return row
}

/** Updates a token: null removes a limit, undefined leaves it. Gives the updated token, if it exists. */
export async function updateRegistrationToken(
  tx: Tx,
  token: string,
  change: { readonly usesAllowed: number | null | undefined; readonly expiresAt: number | null | undefined },
): Promise<RegistrationTokenRow | undefined> {
  const [row] = await tx.query<RegistrationTokenRow>(
    `UPDATE registration_token SET uses_allowed = CASE WHEN $2 THEN $3::integer ELSE uses_allowed END,
       expires_at = CASE WHEN $4 THEN $5::bigint ELSE expires_at END
     WHERE token = $1 RETURNING ${COLUMNS}`,
    [
      token,
      change.usesAllowed !== undefined,
      change.usesAllowed ?? null,
      change.expiresAt !== undefined,
      change.expiresAt ?? null,
    ],
  )
  return row
}

/** Gives whether there was one. */
export async function deleteRegistrationToken(tx: Tx, token: string): Promise<boolean> {
  return (await tx.query('DELETE FROM registration_token WHERE token = $1 RETURNING token', [token])).length === 1
}
