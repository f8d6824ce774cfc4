import type { Medium } from '../../core/threepid.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: identity_session

export interface SessionRow {
  readonly sid: string
  /** Where it was begun. */
  readonly realm: string
  readonly secret_hash: Buffer
  readonly medium: Medium
  readonly address: string
  readonly send_attempt: number
  readonly wrong_tokens: number
  readonly validated_at: number | null
  readonly expires_at: number
}

const COLUMNS = 'sid, realm, secret_hash, medium, address, send_attempt, wrong_tokens, validated_at, expires_at'
const HASH_BYTES = 32

export async function findSession(reader: Reader, sid: string): Promise<SessionRow | undefined> {
  const [row] = await reader.query<SessionRow>(`SELECT ${COLUMNS} FROM identity_session WHERE sid = $1`, [sid])
  return row
}

/** The session of this scope that has not expired, if there is one. */
export async function findScope(reader: Reader, scopeHash: Buffer, now: number): Promise<SessionRow | undefined> {
  const [row] = await reader.query<SessionRow>(
    `SELECT ${COLUMNS} FROM identity_session WHERE scope_hash = $1 AND expires_at > $2`,
    [scopeHash, now],
  )
  return row
}

export interface NewSession {
  readonly sid: string
  readonly realm: string
  readonly scopeHash: Buffer
  readonly secretHash: Buffer
  readonly medium: Medium
  readonly address: string
  readonly now: number
  readonly expiresAt: number
}

/** Begins a session for its scope, if the scope has none or an expired one. Gives the id of the scope's session, new or not. */
export async function insertSession(tx: Tx, session: NewSession): Promise<string> {
  const { sid, realm, scopeHash, secretHash, medium, address, now, expiresAt } = session
  await tx.query('UPDATE identity_session SET scope_hash = NULL WHERE scope_hash = $1 AND expires_at <= $2', [
    scopeHash,
    now,
  ])
  const [row] = await tx.query<{ sid: string }>(
    `INSERT INTO identity_session
       (sid, realm, scope_hash, secret_hash, medium, address, token_hashes, send_attempt, wrong_tokens, created_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, '', -1, 0, $7, $8)
     ON CONFLICT (scope_hash) DO UPDATE SET scope_hash = EXCLUDED.scope_hash RETURNING sid`,
    [sid, realm, scopeHash, secretHash, medium, address, now, expiresAt],
  )
  return row?.sid ?? sid
}

/** Adds a token that validates the session; the newest `kept` tokens stay valid. */
export async function addToken(tx: Tx, sid: string, tokenHash: Buffer, kept: number): Promise<void> {
  await tx.query(
    'UPDATE identity_session SET token_hashes = substring($2::bytea || token_hashes FROM 1 FOR $3) WHERE sid = $1',
    [sid, tokenHash, kept * HASH_BYTES],
  )
}

/** Removes the newest token, because its message could not be sent. */
export async function dropToken(tx: Tx, sid: string, tokenHash: Buffer): Promise<void> {
  await tx.query(
    `UPDATE identity_session SET token_hashes = substring(token_hashes FROM ${HASH_BYTES + 1})
     WHERE sid = $1 AND substring(token_hashes FROM 1 FOR ${HASH_BYTES}) = $2`,
    [sid, tokenHash],
  )
}

export async function recordSent(
  tx: Tx,
  sid: string,
  sendAttempt: number,
  nextLink: string | undefined,
): Promise<void> {
  await tx.query(
    'UPDATE identity_session SET send_attempt = GREATEST(send_attempt, $2), next_link = $3 WHERE sid = $1',
    [sid, sendAttempt, nextLink ?? null],
  )
}

/**
 * Counts a comparison before it is made, so that parallel guesses cannot exceed the limit. Gives the hashes to compare with; undefined
 * when the limit is reached.
 */
export async function spendAttempt(tx: Tx, sid: string, allowed: number): Promise<Buffer[] | undefined> {
  const [row] = await tx.query<{ token_hashes: Buffer }>(
    `UPDATE identity_session SET wrong_tokens = wrong_tokens + 1 WHERE sid = $1 AND wrong_tokens < $2
     RETURNING token_hashes`,
    [sid, allowed],
  )
  if (row === undefined) return undefined
  const count = row.token_hashes.length / HASH_BYTES
  return Array.from({ length: count }, (_, n) => row.token_hashes.subarray(n * HASH_BYTES, (n + 1) * HASH_BYTES))
}

/** For a right token: takes the counted comparison back. The first call validates the session, which then lasts until `expiresAt`. */
export async function markValidated(
  tx: Tx,
  sid: string,
  now: number,
  expiresAt: number,
): Promise<{ next_link: string | null } | undefined> {
  const [row] = await tx.query<{ next_link: string | null }>(
    `UPDATE identity_session
     SET wrong_tokens = GREATEST(wrong_tokens - 1, 0),
         expires_at = CASE WHEN validated_at IS NULL THEN $3 ELSE expires_at END,
         validated_at = COALESCE(validated_at, $2)
     WHERE sid = $1 RETURNING next_link`,
    [sid, now, expiresAt],
  )
  return row
}

/** Removes sessions that expired before this moment. Gives how many there were, at most so many. */
export async function forgetSessions(tx: Tx, expiredBefore: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM identity_session WHERE sid IN (
       SELECT sid FROM identity_session WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING sid`,
    [expiredBefore, atMost],
  )
  return rows.length
}

export interface SessionOfAddress {
  readonly medium: string
  readonly address: string
  readonly realm: string
  readonly created_at: number
  readonly validated_at: number | null
  readonly expires_at: number
}

/** The sessions of an address in every realm, with expired ones that are not removed yet. Reads all sessions. */
export async function findSessionsOf(
  reader: Reader,
  { medium, address }: { readonly medium: string; readonly address: string },
): Promise<SessionOfAddress[]> {
  return reader.query<SessionOfAddress>(
    `SELECT medium, address, realm, created_at, validated_at, expires_at FROM identity_session
     WHERE medium = $1 AND address = $2 ORDER BY created_at`,
    [medium, address],
  )
}

/** Removes them. Gives how many there were. */
export async function deleteSessionsOf(
  tx: Tx,
  { medium, address }: { readonly medium: string; readonly address: string },
): Promise<number> {
  const rows = await tx.query('DELETE FROM identity_session WHERE medium = $1 AND address = $2 RETURNING 1 AS one', [
    medium,
    address,
  ])
  return rows.length
}
