import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: device_key, device, key_signature, one_time_key, fallback_key

export interface DeviceKeyRow {
  readonly user_nid: number
  readonly device_id: string
  readonly json: string
  readonly signature: string
  readonly display_name: string | null
}

/** The users of this server among those ids. */
export async function findLocalUsers(reader: Reader, userIds: readonly UserId[]): Promise<Map<UserId, number>> {
  const rows = await reader.query<{ user_id: UserId; user_nid: number }>(
    'SELECT user_id, user_nid FROM matrix_user JOIN account USING (user_nid) WHERE user_id = ANY($1::text[])',
    [userIds],
  )
  return new Map(rows.map((row) => [row.user_id, row.user_nid]))
}

/** The keys of all devices of users that have any. */
export function deviceKeysOf(reader: Reader, userNids: readonly number[]): Promise<DeviceKeyRow[]> {
  return reader.query<DeviceKeyRow>(
    `SELECT user_nid, device_id, json, signature, display_name FROM device_key JOIN device USING (user_nid, device_id)
     WHERE user_nid = ANY($1::bigint[]) ORDER BY user_nid, device_id`,
    [userNids],
  )
}

export async function findDeviceKey(
  reader: Reader,
  userNid: number,
  deviceId: string,
): Promise<Pick<DeviceKeyRow, 'json' | 'signature'> | undefined> {
  const [row] = await reader.query<Pick<DeviceKeyRow, 'json' | 'signature'>>(
    'SELECT json, signature FROM device_key WHERE user_nid = $1 AND device_id = $2',
    [userNid, deviceId],
  )
  return row
}

/** Stores the keys of a device; false when there is no such device any more. */
export async function storeDeviceKey(
  tx: Tx,
  key: {
    readonly userNid: number
    readonly deviceId: string
    readonly json: string
    readonly signature: string
  },
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO device_key (user_nid, device_id, json, signature)
     SELECT user_nid, device_id, $3, $4 FROM device WHERE user_nid = $1 AND device_id = $2
     ON CONFLICT (user_nid, device_id) DO UPDATE SET json = EXCLUDED.json, signature = EXCLUDED.signature
     RETURNING device_id`,
    [key.userNid, key.deviceId, key.json, key.signature],
  )
  return rows.length === 1
}

/** Removes the signatures of a device's keys. */
export async function forgetSignaturesOf(tx: Tx, userNid: number, deviceId: string): Promise<void> {
  await tx.query('DELETE FROM key_signature WHERE target_nid = $1 AND target = $2', [userNid, deviceId])
}

/** Removes what was signed with earlier keys of a device. */
export async function forgetSignedBy(tx: Tx, userNid: number, deviceId: string): Promise<void> {
  await tx.query(
    `WITH signing AS (DELETE FROM key_signature WHERE signer_nid = $1 AND signer_key = 'ed25519:' || $2),
       fallback AS (DELETE FROM fallback_key WHERE user_nid = $1 AND device_id = $2)
     DELETE FROM one_time_key WHERE user_nid = $1 AND device_id = $2`,
    [userNid, deviceId],
  )
}
