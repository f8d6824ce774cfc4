import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: oauth_session, access_token, refresh_token, oauth_client, device, account, matrix_user

/** Records of which client the session of a device is; false if the client was removed meanwhile. */
export async function putOauthSession(
  tx: Tx,
  session: {
    readonly userNid: number
    readonly deviceId: string
    readonly clientId: string
    readonly scope: string
    readonly grantHash: Buffer
    readonly createdAt: number
  },
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO oauth_session (user_nid, device_id, client_id, scope, grant_hash, created_at)
     SELECT $1, $2, client_id, $4, $5, $6 FROM oauth_client WHERE client_id = $3 FOR KEY SHARE
     ON CONFLICT (user_nid, device_id) DO UPDATE SET client_id = excluded.client_id, scope = excluded.scope,
       grant_hash = excluded.grant_hash, created_at = excluded.created_at RETURNING 1 AS one`,
    [session.userNid, session.deviceId, session.clientId, session.scope, session.grantHash, session.createdAt],
  )
  return rows.length === 1
}

export interface DeviceOf {
  readonly user_nid: number
  readonly device_id: string
}

export async function findDevicesOfGrant(reader: Reader, grantHash: Buffer): Promise<DeviceOf[]> {
  return reader.query<DeviceOf>('SELECT user_nid, device_id FROM oauth_session WHERE grant_hash = $1', [grantHash])
}

/** The device of an access or refresh token that was got by a grant, also if the token has expired. */
export async function findDeviceOfToken(reader: Reader, hash: Buffer): Promise<DeviceOf | undefined> {
  const [row] = await reader.query<DeviceOf>(
    `SELECT s.user_nid, s.device_id FROM oauth_session s
     JOIN (SELECT user_nid, device_id FROM access_token WHERE token_hash = $1
           UNION ALL SELECT user_nid, device_id FROM refresh_token WHERE token_hash = $1) t USING (user_nid, device_id)`,
    [hash],
  )
  return row
}

/** The scope of a device's session. */
export async function findScope(reader: Reader, userNid: number, deviceId: string): Promise<string | undefined> {
  const [row] = await reader.query<{ scope: string }>(
    'SELECT scope FROM oauth_session WHERE user_nid = $1 AND device_id = $2',
    [userNid, deviceId],
  )
  return row?.scope
}

/** A session as the account page lists it. */
export interface SessionRow {
  readonly device_id: string
  readonly display_name: string | null
  readonly created_at: number
  readonly last_seen_at: number | null
  readonly last_seen_ip: string | null
  readonly last_seen_user_agent: string | null
  /** JSON: the client, if the session was got by a grant. */
  readonly client: string | null
}

export function listSessions(reader: Reader, userNid: number): Promise<SessionRow[]> {
  return reader.query<SessionRow>(
    `SELECT d.device_id, d.display_name, d.created_at, d.last_seen_at, d.last_seen_ip, d.last_seen_user_agent, c.metadata AS client
     FROM device d LEFT JOIN oauth_session s USING (user_nid, device_id) LEFT JOIN oauth_client c USING (client_id)
     WHERE d.user_nid = $1 ORDER BY coalesce(d.last_seen_at, d.created_at) DESC, d.device_id`,
    [userNid],
  )
}

export interface GrantableAccount {
  readonly user_nid: number
  readonly user_id: UserId
  readonly is_locked: boolean
}

/** An account that can sign in: no guest, and not deactivated. */
export async function findGrantable(reader: Reader, userNid: number): Promise<GrantableAccount | undefined> {
  const [row] = await reader.query<GrantableAccount>(
    `SELECT a.user_nid, u.user_id, a.is_locked FROM account a JOIN matrix_user u USING (user_nid)
     WHERE a.user_nid = $1 AND a.deactivated_at IS NULL AND NOT a.is_guest`,
    [userNid],
  )
  return row
}
