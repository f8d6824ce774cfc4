import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: access_token, refresh_token, oauth_session, device, account, matrix_user

export interface TokenRow {
  readonly token_nid: number
  readonly user_nid: number
  readonly user_id: UserId
  readonly device_id: string
  readonly is_guest: boolean
  readonly is_locked: boolean
  readonly is_suspended: boolean
  readonly expires_at: number | null
  /** The numbers of the device's earlier logins, newest first. */
  readonly earlier: readonly number[]
  readonly is_oauth: boolean
  /** Until the first use of this access token: hash of the refresh token that it was issued for. */
  readonly renewed_by: Buffer | null
}

/** The owner of a token, by its hash; undefined once the account is deactivated. */
export async function findToken(reader: Reader, hash: Buffer): Promise<TokenRow | undefined> {
  const [row] = await reader.query<TokenRow>(
    `SELECT t.token_nid, t.user_nid, u.user_id, t.device_id, a.is_guest, a.is_locked, a.is_suspended, t.expires_at, t.renewed_by,
       array_remove(d.sessions, t.token_nid) AS earlier, s.client_id IS NOT NULL AS is_oauth
     FROM access_token t JOIN account a USING (user_nid) JOIN matrix_user u USING (user_nid) JOIN device d USING (user_nid, device_id)
       LEFT JOIN oauth_session s USING (user_nid, device_id)
     WHERE t.token_hash = $1 AND a.deactivated_at IS NULL`,
    [hash],
  )
  return row
}

/** A session by its number, which stays the same when its token is renewed; none once it has ended, or its account has. */
export async function findSession(
  reader: Reader,
  tokenNid: number,
): Promise<Pick<TokenRow, 'is_locked' | 'expires_at'> | undefined> {
  const [row] = await reader.query<Pick<TokenRow, 'is_locked' | 'expires_at'>>(
    `SELECT a.is_locked, t.expires_at FROM access_token t JOIN account a USING (user_nid)
     WHERE t.token_nid = $1 AND a.deactivated_at IS NULL`,
    [tokenNid],
  )
  return row
}

interface Token {
  readonly hash: Buffer
  readonly userNid: number
  readonly deviceId: string
  readonly createdAt: number
}

export interface AccessToken extends Token {
  readonly expiresAt: number | undefined
}

/** Replaces the device's access token, which stops working together with its refresh tokens, and records the login; so many logins are kept. */
export async function replaceToken(tx: Tx, token: AccessToken & { readonly sessionsKept: number }): Promise<void> {
  const { hash, userNid, deviceId, createdAt, expiresAt } = token
  await endDeviceTokens(tx, userNid, deviceId)
  await tx.query(
    `WITH login AS (
       INSERT INTO access_token (token_hash, user_nid, device_id, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)
       RETURNING token_nid
     )
     UPDATE device SET sessions = (login.token_nid || sessions)[1:$6] FROM login WHERE user_nid = $2 AND device_id = $3`,
    [hash, userNid, deviceId, createdAt, expiresAt ?? null, token.sessionsKept],
  )
}

/** Removes the tokens of a device; the device stays. What it logs in by next may be another way. */
export async function endDeviceTokens(tx: Tx, userNid: number, deviceId: string): Promise<void> {
  await tx.query(
    `WITH refreshing AS (DELETE FROM refresh_token WHERE user_nid = $1 AND device_id = $2),
       granted AS (DELETE FROM oauth_session WHERE user_nid = $1 AND device_id = $2)
     DELETE FROM access_token WHERE user_nid = $1 AND device_id = $2`,
    [userNid, deviceId],
  )
}

export async function insertRefreshToken(tx: Tx, token: Token): Promise<void> {
  await tx.query('INSERT INTO refresh_token (token_hash, user_nid, device_id, created_at) VALUES ($1, $2, $3, $4)', [
    token.hash,
    token.userNid,
    token.deviceId,
    token.createdAt,
  ])
}

export interface RefreshTokenRow {
  readonly user_nid: number
  readonly device_id: string
  readonly ended_at: number | null
  readonly is_deactivated: boolean
  readonly is_locked: boolean
  /** The client of a session that came from OAuth. */
  readonly oauth_client: string | null
}

/** A refresh token by its hash. Locks the device's row, so that changes to one device's tokens run one after another. */
export async function lockRefreshToken(tx: Tx, hash: Buffer): Promise<RefreshTokenRow | undefined> {
  const [row] = await tx.query<{ user_nid: number; device_id: string }>(
    `SELECT d.user_nid, d.device_id FROM device d
     WHERE (d.user_nid, d.device_id) = (SELECT user_nid, device_id FROM refresh_token WHERE token_hash = $1) FOR UPDATE`,
    [hash],
  )
  if (row === undefined) return undefined
  const [token] = await tx.query<RefreshTokenRow>(
    `SELECT r.user_nid, r.device_id, r.ended_at, a.deactivated_at IS NOT NULL AS is_deactivated, a.is_locked, s.client_id AS oauth_client
     FROM refresh_token r JOIN account a USING (user_nid) LEFT JOIN oauth_session s USING (user_nid, device_id) WHERE r.token_hash = $1`,
    [hash],
  )
  return token
}

/**
 * Renews a device's access token by the refresh token with the hash `by`. The login and its `token_nid` stay the same. Successors
 * of `by` that were never used are dropped; its predecessors have ended.
 */
export async function renewToken(
  tx: Tx,
  renewal: { readonly access: AccessToken; readonly refresh: Buffer; readonly by: Buffer },
): Promise<void> {
  const { access, refresh, by } = renewal
  const { hash, userNid, deviceId, createdAt, expiresAt } = access
  const [before] = await tx.query<{ renewed_by: Buffer | null }>(
    'SELECT renewed_by FROM access_token WHERE user_nid = $1 AND device_id = $2',
    [userNid, deviceId],
  )
  if (before?.renewed_by?.equals(by)) {
    await tx.query(
      'DELETE FROM refresh_token WHERE user_nid = $1 AND device_id = $2 AND ended_at IS NULL AND token_hash <> $3',
      [userNid, deviceId, by],
    )
  } else {
    await endRefreshTokens(tx, { userNid, deviceId, except: by, now: createdAt })
  }
  await insertRefreshToken(tx, { hash: refresh, userNid, deviceId, createdAt })
  await tx.query(
    `INSERT INTO access_token (token_hash, user_nid, device_id, created_at, expires_at, renewed_by)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (user_nid, device_id) DO UPDATE SET
       token_hash = excluded.token_hash, created_at = excluded.created_at,
       expires_at = excluded.expires_at, renewed_by = excluded.renewed_by`,
    [hash, userNid, deviceId, createdAt, expiresAt ?? null, by],
  )
}

/** Notes that a renewed access token has arrived: the refresh token that made it ends. */
export async function confirmRenewal(tx: Tx, tokenNid: number, renewedBy: Buffer, now: number): Promise<void> {
  const rows = await tx.query(
    'UPDATE access_token SET renewed_by = NULL WHERE token_nid = $1 AND renewed_by = $2 RETURNING 1 AS one',
    [tokenNid, renewedBy],
  )
  if (rows.length === 0) return
  await tx.query('UPDATE refresh_token SET ended_at = $2 WHERE token_hash = $1 AND ended_at IS NULL', [renewedBy, now])
}

async function endRefreshTokens(
  tx: Tx,
  device: { readonly userNid: number; readonly deviceId: string; readonly except: Buffer; readonly now: number },
): Promise<void> {
  await tx.query(
    `UPDATE refresh_token SET ended_at = $4
     WHERE user_nid = $1 AND device_id = $2 AND token_hash <> $3 AND ended_at IS NULL`,
    [device.userNid, device.deviceId, device.except, device.now],
  )
}

/** Removes at most so many refresh tokens that ended before a moment, and gives how many. */
export async function forgetRefreshTokens(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM refresh_token WHERE token_hash IN (
       SELECT token_hash FROM refresh_token WHERE ended_at < $1 ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}

/** Sets the time at which the access token of a device expires. */
export async function setTokenEnd(tx: Tx, userNid: number, deviceId: string, expiresAt: number): Promise<void> {
  await tx.query('UPDATE access_token SET expires_at = $3 WHERE user_nid = $1 AND device_id = $2', [
    userNid,
    deviceId,
    expiresAt,
  ])
}
