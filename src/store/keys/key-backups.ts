import type { RoomId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: key_backup_owner, key_backup, backed_up_key

/** A version of a user's backup. */
export interface BackupKey {
  readonly userNid: number
  readonly version: number
}

export interface BackupRow {
  readonly version: number
  readonly algorithm: string
  /** JSON */
  readonly auth_data: string
  readonly etag: number
  readonly key_count: number
}

export interface BackedUpKey {
  readonly room_id: RoomId
  readonly session_id: string
  readonly first_message_index: number
  readonly forwarded_count: number
  readonly is_verified: boolean
  /** JSON */
  readonly session_data: string
}

/** All keys, those of a room, or one. */
export interface KeyPlace {
  readonly roomId?: RoomId
  readonly sessionId?: string
}

export interface BackupState {
  readonly etag: number
  readonly key_count: number
}

const BACKUP = 'version, algorithm, auth_data, etag, key_count'
const KEY = 'room_id, session_id, first_message_index, forwarded_count, is_verified, session_data'

/** Conditions for a place and the values they name, which follow `user_nid` and `version`. */
function inPlace({ roomId, sessionId }: KeyPlace): { sql: string; values: string[] } {
  if (roomId === undefined) return { sql: '', values: [] }
  if (sessionId === undefined) return { sql: 'AND room_id = $3', values: [roomId] }
  return { sql: 'AND room_id = $3 AND session_id = $4', values: [roomId, sessionId] }
}

/** Makes a backup under the user's next version, and removes the oldest ones beyond `keep`. */
export async function insertKeyBackup(
  tx: Tx,
  backup: { readonly userNid: number; readonly algorithm: string; readonly authData: string; readonly keep: number },
): Promise<number> {
  const [row] = await tx.query<{ version: number }>(
    `WITH owner AS (
       INSERT INTO key_backup_owner AS known (user_nid, last_version) VALUES ($1, 1)
       ON CONFLICT (user_nid) DO UPDATE SET last_version = known.last_version + 1 RETURNING last_version
     ), trimmed AS (
       DELETE FROM key_backup WHERE user_nid = $1 AND version <= (
         SELECT version FROM key_backup WHERE user_nid = $1 ORDER BY version DESC OFFSET $4 - 1 LIMIT 1)
     )
     INSERT INTO key_backup (user_nid, ${BACKUP}) SELECT $1, last_version, $2, $3, 0, 0 FROM owner RETURNING version`,
    [backup.userNid, backup.algorithm, backup.authData, backup.keep],
  )
  return (row as { version: number }).version
}

/** A version of a user's backup, or without a version the current one. */
export async function findKeyBackup(reader: Reader, userNid: number, version?: number): Promise<BackupRow | undefined> {
  const [row] = await reader.query<BackupRow>(
    `SELECT ${BACKUP} FROM key_backup WHERE user_nid = $1 AND version = coalesce($2, version)
     ORDER BY version DESC LIMIT 1`,
    [userNid, version ?? null],
  )
  return row
}

/** Updates the `auth_data` of a backup; false if there is none of this version and algorithm. */
export async function updateKeyBackup(
  tx: Tx,
  { userNid, version }: BackupKey,
  algorithm: string,
  authData: string,
): Promise<boolean> {
  const rows = await tx.query(
    'UPDATE key_backup SET auth_data = $4 WHERE user_nid = $1 AND version = $2 AND algorithm = $3 RETURNING version',
    [userNid, version, algorithm, authData],
  )
  return rows.length === 1
}

/** Serialises changes of a user's backups. Gives the last version that the user ever had; undefined if there was none. */
async function lockOwner(tx: Tx, userNid: number): Promise<number | undefined> {
  const rows = await tx.query<{ last_version: number }>(
    'SELECT last_version FROM key_backup_owner WHERE user_nid = $1 FOR UPDATE',
    [userNid],
  )
  return rows[0]?.last_version
}

/** Removes a backup with its keys; false when there never was one of this version. */
export async function deleteKeyBackup(tx: Tx, { userNid, version }: BackupKey): Promise<boolean> {
  const [last = 0] = await Promise.all([
    lockOwner(tx, userNid),
    tx.query('DELETE FROM key_backup WHERE user_nid = $1 AND version = $2', [userNid, version]),
  ])
  return version >= 1 && version <= last
}

/** Removes all backups of a user. Later ones go on counting their versions. */
export async function deleteKeyBackups(tx: Tx, userNid: number): Promise<void> {
  await Promise.all([lockOwner(tx, userNid), tx.query('DELETE FROM key_backup WHERE user_nid = $1', [userNid])])
}

export interface PutKeys {
  /** The user's current version; undefined without a backup. */
  readonly current: number | undefined
  /** Whether there is a backup of the version that was named. */
  readonly isKnown: boolean
  /** Nothing was written, because the user would have too many keys, or bytes of them. */
  readonly isFull: boolean
  /** The state of the backup after the write; undefined if nothing was written. */
  readonly state: BackupState | undefined
}

interface PutRow {
  readonly current: number | null
  readonly is_known: boolean
  readonly is_full: boolean
  readonly etag: number | null
  readonly key_count: number
}

const PUT_KEYS = `WITH known AS (
    SELECT max(version) AS current, coalesce(bool_or(version = $2), false) AS is_known, coalesce(sum(key_count), 0) AS keys, coalesce(sum(bytes), 0) AS bytes
    FROM key_backup WHERE user_nid = $1
  ), given AS (
    SELECT * FROM unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::boolean[], $8::text[]) AS given (${KEY})
  ), looked AS (
    -- One look-up per key, whatever is believed of the table's size: as a join this may compare all with all.
    SELECT octet_length(given.session_data) AS bytes, (
      SELECT CASE WHEN (NOT given.is_verified, given.first_message_index, given.forwarded_count)
          < (NOT old.is_verified, old.first_message_index, old.forwarded_count)
        THEN octet_length(old.session_data) ELSE octet_length(given.session_data) END
      FROM backed_up_key old WHERE user_nid = $1 AND version = $2
      AND old.room_id = given.room_id AND old.session_id = given.session_id) AS before
    FROM given
  ), added AS (
    SELECT count(*) FILTER (WHERE before IS NULL) AS added, coalesce(sum(bytes - coalesce(before, 0)), 0) AS grown FROM looked
  ), verdict AS (
    SELECT current, is_known, added, grown, keys + added > $9 OR (grown > 0 AND bytes + grown > $10) AS is_full FROM known, added
  ), put AS (
    INSERT INTO backed_up_key AS old (user_nid, version, ${KEY})
    SELECT $1, $2, given.* FROM given, verdict WHERE current = $2 AND NOT is_full
    ON CONFLICT (user_nid, version, room_id, session_id) DO UPDATE SET
      first_message_index = EXCLUDED.first_message_index, forwarded_count = EXCLUDED.forwarded_count,
      is_verified = EXCLUDED.is_verified, session_data = EXCLUDED.session_data
    WHERE (NOT EXCLUDED.is_verified, EXCLUDED.first_message_index, EXCLUDED.forwarded_count)
        < (NOT old.is_verified, old.first_message_index, old.forwarded_count)
    RETURNING 1
  ), state AS (
    UPDATE key_backup SET etag = etag + EXISTS (SELECT FROM put)::int, key_count = key_count + added, bytes = bytes + grown
    FROM verdict WHERE user_nid = $1 AND version = $2 AND current = $2 AND NOT is_full RETURNING etag, key_count
  )
  SELECT current, is_known, is_full, etag, key_count FROM verdict LEFT JOIN state ON true`

/**
 * Puts keys into a backup if it is the current one. A new key replaces an old one if only the new one is verified; else if its first index
 * is lower; else if it was forwarded less often (client-server API, "Backup algorithms").
 *
 * @param keys no two of one room and session
 */
export async function putBackedUpKeys(
  tx: Tx,
  { userNid, version }: BackupKey,
  keys: readonly BackedUpKey[],
  most: { readonly keys: number; readonly bytes: number },
): Promise<PutKeys> {
  const locked = lockOwner(tx, userNid)
  const putting = tx.query<PutRow>(PUT_KEYS, [
    userNid,
    version,
    keys.map((key) => key.room_id),
    keys.map((key) => key.session_id),
    keys.map((key) => key.first_message_index),
    keys.map((key) => key.forwarded_count),
    keys.map((key) => key.is_verified),
    keys.map((key) => key.session_data),
    most.keys,
    most.bytes,
  ])
  // Both are sent at once: the second statement sees everything that was committed before the first one got its lock.
  const [, rows] = await Promise.all([locked, putting])
  const [row] = rows as [PutRow]
  return {
    current: row.current ?? undefined,
    isKnown: row.is_known,
    isFull: row.is_full,
    state: row.etag === null ? undefined : { etag: row.etag, key_count: row.key_count },
  }
}

/** Removes keys of a backup. Its state after that; undefined when there is no such backup. */
export async function deleteBackedUpKeys(
  tx: Tx,
  { userNid, version }: BackupKey,
  place: KeyPlace,
): Promise<BackupState | undefined> {
  const { sql, values } = inPlace(place)
  const locked = lockOwner(tx, userNid)
  const deleting = tx.query<BackupState>(
    `WITH gone AS (
       DELETE FROM backed_up_key WHERE user_nid = $1 AND version = $2 ${sql} RETURNING octet_length(session_data) AS bytes
     )
     UPDATE key_backup SET etag = etag + EXISTS (SELECT FROM gone)::int, key_count = key_count - (SELECT count(*) FROM gone),
       bytes = greatest(0, bytes - (SELECT coalesce(sum(bytes), 0) FROM gone))
     WHERE user_nid = $1 AND version = $2 RETURNING etag, key_count`,
    [userNid, version, ...values],
  )
  const [, rows] = await Promise.all([locked, deleting])
  return rows[0]
}

/** Keys of a backup in the order of room and session, from behind `after` on. */
export function backedUpKeys(
  reader: Reader,
  { userNid, version }: BackupKey,
  place: KeyPlace,
  after: Pick<BackedUpKey, 'room_id' | 'session_id'> | undefined,
  limit: number,
): Promise<BackedUpKey[]> {
  const { sql, values } = inPlace(place)
  const next = values.length + 3
  return reader.query<BackedUpKey>(
    `SELECT ${KEY} FROM backed_up_key
     WHERE user_nid = $1 AND version = $2 ${sql} AND (room_id, session_id) > ($${next}, $${next + 1})
     ORDER BY room_id, session_id LIMIT $${next + 2}`,
    [userNid, version, ...values, after?.room_id ?? '', after?.session_id ?? '', limit],
  )
}
