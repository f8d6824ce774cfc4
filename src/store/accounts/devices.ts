import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: device, account, dehydrated_device; read: matrix_user

export interface DeviceRow {
  readonly device_id: string
  readonly display_name: string | null
  readonly last_seen_at: number | null
  readonly last_seen_ip: string | null
}

const COLUMNS = 'device_id, display_name, last_seen_at, last_seen_ip'

export function listDevices(reader: Reader, userNid: number): Promise<DeviceRow[]> {
  return reader.query<DeviceRow>(`SELECT ${COLUMNS} FROM device WHERE user_nid = $1 ORDER BY created_at, device_id`, [
    userNid,
  ])
}

export async function findDevice(reader: Reader, userNid: number, deviceId: string): Promise<DeviceRow | undefined> {
  const [row] = await reader.query<DeviceRow>(`SELECT ${COLUMNS} FROM device WHERE user_nid = $1 AND device_id = $2`, [
    userNid,
    deviceId,
  ])
  return row
}

/** The addresses at which the user's devices were last, since a moment. */
export async function addressesSeenAt(reader: Reader, userNid: number, since: number): Promise<string[]> {
  const rows = await reader.query<{ last_seen_ip: string }>(
    `SELECT DISTINCT last_seen_ip FROM device WHERE user_nid = $1 AND last_seen_at > $2 AND last_seen_ip IS NOT NULL`,
    [userNid, since],
  )
  return rows.map(({ last_seen_ip }) => last_seen_ip)
}

/** Makes the device unless it exists, and locks its row: two logins of one device follow each other. Gives whether it is new. */
export async function ensureDevice(
  tx: Tx,
  device: {
    readonly userNid: number
    readonly deviceId: string
    readonly displayName: string | undefined
    readonly createdAt: number
  },
): Promise<boolean> {
  const [row] = await tx.query<{ is_new: boolean }>(
    `INSERT INTO device (user_nid, device_id, display_name, created_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (user_nid, device_id) DO UPDATE SET device_id = EXCLUDED.device_id RETURNING xmax = 0 AS is_new`,
    [device.userNid, device.deviceId, device.displayName ?? null, device.createdAt],
  )
  return row!.is_new
}

/** Gives the device another name; false when there is no such device. */
export async function renameDevice(tx: Tx, userNid: number, deviceId: string, name: string | null): Promise<boolean> {
  const rows = await tx.query(
    'UPDATE device SET display_name = $3 WHERE user_nid = $1 AND device_id = $2 RETURNING device_id',
    [userNid, deviceId, name],
  )
  return rows.length === 1
}

/** The devices beyond the `keep` that were used last. The dehydrated one is not among them: nobody uses it until all others are lost. */
export async function findUnusedDevices(reader: Reader, userNid: number, keep: number): Promise<string[]> {
  const rows = await reader.query<{ device_id: string }>(
    `SELECT device_id FROM device d WHERE user_nid = $1
       AND NOT EXISTS (SELECT 1 FROM dehydrated_device h WHERE h.user_nid = d.user_nid AND h.device_id = d.device_id)
     ORDER BY coalesce(last_seen_at, created_at) DESC, device_id OFFSET $2`,
    [userNid, keep],
  )
  return rows.map((row) => row.device_id)
}

/** Devices of people that nobody has used since a moment, by user; nobody uses a dehydrated one. Reads all devices. */
export function findStaleDevices(
  reader: Reader,
  unusedSince: number,
  atMost: number,
): Promise<{ readonly user_nid: number; readonly user_id: UserId; readonly device_ids: readonly string[] }[]> {
  return reader.query(
    `SELECT d.user_nid, u.user_id, array_agg(d.device_id ORDER BY d.device_id) AS device_ids
     FROM device d JOIN account a USING (user_nid) JOIN matrix_user u USING (user_nid)
     WHERE coalesce(d.last_seen_at, d.created_at) < $1 AND a.appservice_id IS NULL
       AND NOT EXISTS (SELECT FROM dehydrated_device h WHERE h.user_nid = d.user_nid AND h.device_id = d.device_id)
     GROUP BY d.user_nid, u.user_id LIMIT $2`,
    [unusedSince, atMost],
  )
}

/**
 * Removes devices with their tokens, keys, signatures and waiting messages. Gives the devices that existed.
 *
 * @param unusedSince removes only those that nobody has used since then
 */
export async function deleteDevices(
  tx: Tx,
  userNid: number,
  deviceIds: readonly string[],
  unusedSince = Number.MAX_SAFE_INTEGER,
): Promise<string[]> {
  const rows = await tx.query<{ device_id: string }>(
    `WITH gone AS (
       DELETE FROM device WHERE user_nid = $1 AND device_id = ANY($2::text[]) AND coalesce(last_seen_at, created_at) < $3
       RETURNING device_id
     ), signed AS (
       DELETE FROM key_signature WHERE target_nid = $1 AND target IN (SELECT device_id FROM gone)
     ), sent AS (
       DELETE FROM to_device_txn WHERE user_nid = $1 AND device_id IN (SELECT device_id FROM gone)
     ), signing AS (
       DELETE FROM key_signature WHERE signer_nid = $1 AND signer_key IN (SELECT 'ed25519:' || device_id FROM gone)
     )
     SELECT device_id FROM gone`,
    [userNid, deviceIds, unusedSince],
  )
  return rows.map((row) => row.device_id)
}

export interface Sighting {
  readonly userNid: number
  readonly deviceId: string
  readonly at: number
  readonly ip: string
  readonly userAgent: string | undefined
}

export async function recordSightings(tx: Tx, sightings: readonly Sighting[]): Promise<void> {
  await tx.query(
    `UPDATE device d SET last_seen_at = s.at, last_seen_ip = s.ip, last_seen_user_agent = s.user_agent
     FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[]) AS s (user_nid, device_id, at, ip, user_agent)
     WHERE d.user_nid = s.user_nid AND d.device_id = s.device_id`,
    [
      sightings.map(({ userNid }) => userNid),
      sightings.map(({ deviceId }) => deviceId),
      sightings.map(({ at }) => at),
      sightings.map(({ ip }) => ip),
      sightings.map(({ userAgent }) => userAgent ?? null),
    ],
  )
  await tx.query(
    `UPDATE account a SET last_active_at = s.at
     FROM (SELECT user_nid, max(at) AS at FROM unnest($1::bigint[], $2::bigint[]) AS t (user_nid, at) GROUP BY user_nid) s
     WHERE a.user_nid = s.user_nid AND coalesce(a.last_active_at, 0) < s.at - $3`,
    [sightings.map(({ userNid }) => userNid), sightings.map(({ at }) => at), DAY_MS],
  )
}

const DAY_MS = 24 * 3_600_000
