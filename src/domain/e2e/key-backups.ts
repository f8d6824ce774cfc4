import { ProtocolError } from '../../core/errors.ts'
import { isRoomId, type RoomId } from '../../core/ids.ts'
import { isWellFormed, type JsonObject } from '../../core/json.ts'
import type { Database } from '../../store/db/db.ts'
import {
  type BackedUpKey,
  type BackupKey,
  type BackupRow,
  type BackupState,
  backedUpKeys,
  deleteBackedUpKeys,
  deleteKeyBackup,
  findKeyBackup,
  insertKeyBackup,
  type KeyPlace,
  putBackedUpKeys,
  updateKeyBackup,
} from '../../store/keys/key-backups.ts'
import {
  MAX_BACKED_UP_KEY_BYTES,
  MAX_BACKED_UP_KEYS,
  MAX_BACKUP_ALGORITHM_CHARS,
  MAX_BACKUP_AUTH_BYTES,
  MAX_KEY_BACKUPS,
  MAX_SESSION_DATA_BYTES,
  MAX_SESSION_ID_CHARS,
} from '../limits.ts'
import { checkText } from '../text.ts'

/** A room key as a client backs it up (client-server API, `KeyBackupData`). */
export interface KeyBackupData {
  readonly first_message_index: number
  readonly forwarded_count: number
  readonly is_verified: boolean
  /** Encrypted by the client. */
  readonly session_data: JsonObject | string
}

/** Room id, then session id. */
export type RoomKeys = Readonly<Record<string, { readonly sessions: Readonly<Record<string, KeyBackupData>> }>>

/** How a backup is encrypted. */
export interface BackupDescription {
  readonly algorithm: string
  readonly auth_data: JsonObject | string
}

export interface BackupInfo extends BackupDescription {
  readonly version: string
  readonly etag: string
  readonly count: number
}

/** The state of a backup after a change of its keys. */
export interface KeysChanged {
  /** It changes exactly when the keys change. */
  readonly etag: string
  readonly count: number
}

/** Keys, in parts as they are read. */
export type BackedUpKeys = AsyncIterable<readonly BackedUpKey[]>

/** Backups of the keys of encrypted rooms (client-server API, "Server-side key backups"). Versions are increasing decimal numbers. */
export interface KeyBackups {
  /** Makes a backup and returns its version. It becomes the current one. @throws ProtocolError `M_INVALID_PARAM` */
  create(userNid: number, description: BackupDescription): Promise<string>
  /** A version, or the current one. @throws ProtocolError `M_NOT_FOUND` */
  get(userNid: number, version?: string): Promise<BackupInfo>
  /**
   * Changes `auth_data`. @throws ProtocolError `M_NOT_FOUND`; `M_INVALID_PARAM` for another algorithm, or if the body names another
   * version than the path
   */
  update(userNid: number, version: string, body: BackupDescription & { readonly version?: string }): Promise<void>
  /** Removes a version and its keys. A second call succeeds too. @throws ProtocolError `M_NOT_FOUND` */
  remove(userNid: number, version: string): Promise<void>
  /**
   * Puts keys into the current backup, if they are better than the stored ones.
   * @throws ProtocolError `M_WRONG_ROOM_KEYS_VERSION`, `M_NOT_FOUND`, `M_INVALID_PARAM`, `M_TOO_LARGE`
   */
  putKeys(userNid: number, version: string, keys: RoomKeys): Promise<KeysChanged>
  /** One key. @throws ProtocolError `M_NOT_FOUND` */
  getKey(userNid: number, version: string, roomId: RoomId, sessionId: string): Promise<KeyBackupData>
  /** All keys of a version, or those of a room, ordered by room. @throws ProtocolError `M_NOT_FOUND` */
  getKeys(userNid: number, version: string, roomId?: RoomId): Promise<BackedUpKeys>
  /** @throws ProtocolError `M_NOT_FOUND` if there is no such version */
  removeKeys(userNid: number, version: string, place: KeyPlace): Promise<KeysChanged>
}

const KEYS_AT_ONCE = 1_000
const MOST = { keys: MAX_BACKED_UP_KEYS, bytes: MAX_BACKED_UP_KEY_BYTES }

export function createKeyBackups({ db }: { readonly db: Database }): KeyBackups {
  async function found(userNid: number, version: string): Promise<BackupKey> {
    const backup = keyOf(userNid, version)
    if ((await findKeyBackup(db, userNid, backup.version)) === undefined) throw unknownVersion()
    return backup
  }

  async function* pages(backup: BackupKey, place: KeyPlace): AsyncGenerator<readonly BackedUpKey[]> {
    let after: BackedUpKey | undefined
    do {
      const page: readonly BackedUpKey[] = await backedUpKeys(db, backup, place, after, KEYS_AT_ONCE)
      if (page.length > 0) yield page
      after = page.length === KEYS_AT_ONCE ? page.at(-1) : undefined
    } while (after !== undefined)
  }

  return {
    async create(userNid, { algorithm, auth_data }) {
      checkText('algorithm', algorithm, MAX_BACKUP_ALGORITHM_CHARS)
      const backup = { userNid, algorithm, authData: authDataOf(auth_data), keep: MAX_KEY_BACKUPS }
      return String(await db.tx((tx) => insertKeyBackup(tx, backup)))
    },

    async get(userNid, version) {
      const number = version === undefined ? undefined : keyOf(userNid, version).version
      const row = await findKeyBackup(db, userNid, number)
      if (row !== undefined) return infoOf(row)
      throw version === undefined ? new ProtocolError('M_NOT_FOUND', 'You have no key backup.') : unknownVersion()
    },

    async update(userNid, version, body) {
      const backup = keyOf(userNid, version)
      if (body.version !== undefined && body.version !== version) {
        throw new ProtocolError('M_INVALID_PARAM', "'version' is not the one in the path.")
      }
      const authData = authDataOf(body.auth_data)
      if (await db.tx((tx) => updateKeyBackup(tx, backup, body.algorithm, authData))) return
      await found(userNid, version)
      throw new ProtocolError('M_INVALID_PARAM', 'The algorithm of a backup cannot change. Make a new one.')
    },

    async remove(userNid, version) {
      const backup = keyOf(userNid, version)
      if (!(await db.tx((tx) => deleteKeyBackup(tx, backup)))) throw unknownVersion()
    },

    async putKeys(userNid, version, keys) {
      const backup = keyOf(userNid, version)
      const rows = [...rowsOf(keys)]
      const put = await db.tx((tx) => putBackedUpKeys(tx, backup, rows, MOST))
      if (put.state !== undefined) return changed(put.state)
      if (put.current === undefined || !put.isKnown) throw unknownVersion()
      if (put.current === backup.version) {
        throw new ProtocolError(
          'M_TOO_LARGE',
          `Your backups may hold ${MOST.keys} keys of ${MOST.bytes / 1024 ** 2} MiB together. Delete an old version.`,
        )
      }
      throw new ProtocolError('M_WRONG_ROOM_KEYS_VERSION', 'This version of the backup is not the current one.', {
        extra: { current_version: String(put.current) },
      })
    },

    async getKey(userNid, version, roomId, sessionId) {
      const place = { roomId, sessionId }
      const [row] = await backedUpKeys(db, keyOf(userNid, version), place, undefined, 1)
      if (row === undefined) throw new ProtocolError('M_NOT_FOUND', 'There is no such key in this backup.')
      const { first_message_index, forwarded_count, is_verified, session_data } = row
      return {
        first_message_index,
        forwarded_count,
        is_verified,
        session_data: JSON.parse(session_data) as JsonObject | string,
      }
    },

    async getKeys(userNid, version, roomId) {
      return pages(await found(userNid, version), roomId === undefined ? {} : { roomId })
    },

    async removeKeys(userNid, version, place) {
      const backup = keyOf(userNid, version)
      const state = await db.tx((tx) => deleteBackedUpKeys(tx, backup, place))
      if (state === undefined) throw unknownVersion()
      return changed(state)
    },
  }
}

function unknownVersion(): ProtocolError {
  return new ProtocolError('M_NOT_FOUND', 'You have no backup of this version.')
}

function keyOf(userNid: number, version: string): BackupKey {
  if (!/^[1-9]\d{0,14}$/.test(version)) throw unknownVersion()
  return { userNid, version: Number(version) }
}

function infoOf({ version, algorithm, auth_data, etag, key_count }: BackupRow): BackupInfo {
  const description = { algorithm, auth_data: JSON.parse(auth_data) as JsonObject | string }
  return { ...description, version: String(version), etag: String(etag), count: key_count }
}

function changed({ etag, key_count }: BackupState): KeysChanged {
  return { etag: String(etag), count: key_count }
}

function authDataOf(authData: JsonObject | string): string {
  const json = JSON.stringify(authData)
  if (Buffer.byteLength(json) <= MAX_BACKUP_AUTH_BYTES) return json
  throw new ProtocolError('M_TOO_LARGE', `'auth_data' may have ${MAX_BACKUP_AUTH_BYTES} bytes.`)
}

function* rowsOf(keys: RoomKeys): Generator<BackedUpKey> {
  for (const [roomId, { sessions }] of Object.entries(keys)) {
    if (!isRoomId(roomId) || !isWellFormed(roomId))
      throw new ProtocolError('M_INVALID_PARAM', "A key of 'rooms' is not a room id.")
    for (const [sessionId, { session_data, ...rest }] of Object.entries(sessions)) {
      checkText('session id', sessionId, MAX_SESSION_ID_CHARS)
      if (!isWellFormed(sessionId)) throw new ProtocolError('M_INVALID_PARAM', 'A session id is not Unicode.')
      const data = JSON.stringify(session_data)
      if (Buffer.byteLength(data) > MAX_SESSION_DATA_BYTES) {
        throw new ProtocolError('M_TOO_LARGE', `'session_data' may have ${MAX_SESSION_DATA_BYTES} bytes.`)
      }
      yield { ...rest, room_id: roomId, session_id: sessionId, session_data: data }
    }
  }
}
