import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: account_data, matrix_user

/** An item of a user's account data. */
export class AccountDataRow {
  /** '' for global account data. */
  readonly room_id: string
  readonly type: string
  readonly position: number
  readonly bytes: number
  /** The content; undefined if the result became too large before this row: see `accountDataOf`. */
  readonly json: string | undefined

  constructor({ room_id, type, position, bytes, json }: StoredRow) {
    this.room_id = room_id
    this.type = type
    this.position = position
    this.bytes = bytes
    this.json = json ?? undefined
  }

  get content(): JsonObject {
    return JSON.parse(this.json ?? '{}')
  }
}

interface StoredRow {
  readonly room_id: string
  readonly type: string
  readonly position: number
  readonly bytes: number
  readonly json: string | null
}

export async function findAccountData(
  reader: Reader,
  userNid: number,
  roomId: string,
  type: string,
): Promise<JsonObject | undefined> {
  const [row] = await reader.query<{ content: string }>(
    'SELECT content FROM account_data WHERE user_nid = $1 AND room_id = $2 AND type = $3 AND NOT is_deleted',
    [userNid, roomId, type],
  )
  return row && (JSON.parse(row.content) as JsonObject)
}

/**
 * A user's account data that was last written after ledger position `after` and up to `upTo`, in the order of writing; only that of one
 * room if one is given. From the beginning (0) nothing deleted is returned. Contents are returned up to a total of bytes; read the others with `accountDataOf`. An account may hold much data
 * from before it was limited.
 */
export async function accountDataBetween(
  reader: Reader,
  userNid: number,
  after: number,
  upTo: number,
  { maxBytes = Number.MAX_SAFE_INTEGER, roomId }: { readonly maxBytes?: number; readonly roomId?: string } = {},
): Promise<AccountDataRow[]> {
  const rows = await reader.query<StoredRow>(
    `SELECT room_id, type, position, octet_length(content) AS bytes,
       CASE WHEN sum(octet_length(content)) OVER (ORDER BY position, room_id, type) <= $4 THEN content END AS json
     FROM account_data WHERE user_nid = $1 AND position > $2 AND position <= $3 AND ($5::text IS NULL OR room_id = $5)
       AND ($2 > 0 OR NOT is_deleted)
     ORDER BY position, room_id, type`,
    [userNid, after, upTo, maxBytes, roomId ?? null],
  )
  return rows.map((row) => new AccountDataRow(row))
}

/** The same for some rooms. */
export async function accountDataOfRooms(
  reader: Reader,
  userNid: number,
  roomIds: readonly string[],
  { after, upTo, maxBytes }: { readonly after: number; readonly upTo: number; readonly maxBytes: number },
): Promise<AccountDataRow[]> {
  const rows = await reader.query<StoredRow>(
    `SELECT room_id, type, position, octet_length(content) AS bytes,
       CASE WHEN sum(octet_length(content)) OVER (ORDER BY position, room_id, type) <= $5 THEN content END AS json
     FROM account_data WHERE user_nid = $1 AND room_id = ANY ($2::text[]) AND position > $3 AND position <= $4 AND ($3 > 0 OR NOT is_deleted)
     ORDER BY position, room_id, type`,
    [userNid, roomIds, after, upTo, maxBytes],
  )
  return rows.map((row) => new AccountDataRow(row))
}

/** The contents of one type of a user's account data, by room. */
export async function accountDataByRoom(
  reader: Reader,
  userNid: number,
  type: string,
): Promise<ReadonlyMap<string, JsonObject>> {
  const rows = await reader.query<{ room_id: string; content: string }>(
    `SELECT room_id, content FROM account_data WHERE user_nid = $1 AND room_id <> '' AND type = $2 AND NOT is_deleted`,
    [userNid, type],
  )
  return new Map(rows.map(({ room_id, content }) => [room_id, JSON.parse(content) as JsonObject]))
}

/** These items with their contents, as far as they still exist. */
export async function accountDataOf(
  reader: Reader,
  userNid: number,
  pieces: readonly Pick<AccountDataRow, 'room_id' | 'type'>[],
): Promise<AccountDataRow[]> {
  const rows = await reader.query<StoredRow>(
    `SELECT a.room_id, a.type, a.position, octet_length(a.content) AS bytes, a.content AS json
     FROM unnest($2::text[], $3::text[]) AS wanted (room_id, type)
     JOIN account_data a ON a.user_nid = $1 AND a.room_id = wanted.room_id AND a.type = wanted.type`,
    [userNid, pieces.map(({ room_id }) => room_id), pieces.map(({ type }) => type)],
  )
  return rows.map((row) => new AccountDataRow(row))
}

/** Global account data of some types of a user. */
export async function getGlobalAccountData(
  reader: Reader,
  userId: UserId,
  types: readonly string[],
): Promise<{ readonly type: string; readonly content: JsonObject }[]> {
  const rows = await reader.query<{ type: string; content: string }>(
    `SELECT type, content FROM matrix_user JOIN account_data USING (user_nid)
     WHERE user_id = $1 AND room_id = '' AND type = ANY ($2::text[]) AND NOT is_deleted`,
    [userId, types],
  )
  return rows.map(({ type, content }) => ({ type, content: JSON.parse(content) as JsonObject }))
}

export async function setAccountData(
  tx: Tx,
  data: {
    readonly userNid: number
    readonly roomId: string
    readonly type: string
    readonly content: string
    readonly position: number
  },
): Promise<void> {
  await tx.query(
    `INSERT INTO account_data (user_nid, room_id, type, content, position) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (user_nid, room_id, type) DO UPDATE
     SET content = EXCLUDED.content, position = EXCLUDED.position, is_deleted = false`,
    [data.userNid, data.roomId, data.type, data.content, data.position],
  )
}

/**
 * Deletes a piece of account data, and forgets the oldest of those that were deleted.
 *
 * @param kept how many deleted ones are remembered
 * @returns whether it was there
 */
export async function deleteAccountData(
  tx: Tx,
  data: { readonly userNid: number; readonly roomId: string; readonly type: string; readonly position: number },
  kept: number,
): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE account_data SET content = '{}', is_deleted = true, position = $4
     WHERE user_nid = $1 AND room_id = $2 AND type = $3 AND NOT is_deleted RETURNING 1 AS one`,
    [data.userNid, data.roomId, data.type, data.position],
  )
  if (rows.length === 0) return false
  await tx.query(
    `DELETE FROM account_data WHERE ctid = ANY(ARRAY(SELECT ctid FROM account_data
       WHERE user_nid = $1 AND is_deleted ORDER BY position DESC OFFSET $2))`,
    [data.userNid, kept],
  )
  return true
}

/** Writes content over other content. False, and nothing is written, when that is not there any more. */
export async function replaceAccountData(
  tx: Tx,
  data: {
    readonly userNid: number
    readonly roomId: string
    readonly type: string
    readonly before: string
    readonly content: string
    readonly position: number
  },
): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE account_data SET content = $5, position = $6
     WHERE user_nid = $1 AND room_id = $2 AND type = $3 AND content = $4 RETURNING 1 AS one`,
    [data.userNid, data.roomId, data.type, data.before, data.content, data.position],
  )
  return rows.length === 1
}

/** Those of some users who have tags of a room, or direct chats. */
export async function usersWithRoomSettings(
  reader: Reader,
  userNids: readonly number[],
  roomId: string,
): Promise<number[]> {
  const rows = await reader.query<{ user_nid: number }>(
    `SELECT DISTINCT user_nid FROM account_data WHERE user_nid = ANY($1::bigint[])
     AND ((room_id = $2 AND type = 'm.tag') OR (room_id = '' AND type = 'm.direct'))`,
    [userNids, roomId],
  )
  return rows.map(({ user_nid }) => user_nid)
}

export interface KeptData {
  readonly pieces: number
  readonly bytes: number
  /** Bytes of the item in question; null if there is none. */
  readonly of_piece: number | null
}

/** The size of a user's account data, in total and of one type. */
export async function measureAccountData(
  reader: Reader,
  userNid: number,
  roomId: string,
  type: string,
): Promise<KeptData> {
  const [row] = await reader.query<KeptData>(
    `SELECT count(*) AS pieces, coalesce(sum(bytes), 0)::bigint AS bytes,
       max(bytes) FILTER (WHERE room_id = $2 AND type = $3) AS of_piece
     FROM (SELECT room_id, type, octet_length(content) + octet_length(type) + octet_length(room_id) AS bytes
       FROM account_data WHERE user_nid = $1 AND NOT is_deleted) AS kept`,
    [userNid, roomId, type],
  )
  return row!
}

/** All account data of a user. */
export async function listAccountData(reader: Reader, userNid: number): Promise<AccountDataRow[]> {
  const rows = await reader.query<StoredRow>(
    `SELECT room_id, type, position, octet_length(content) AS bytes, content AS json
     FROM account_data WHERE user_nid = $1 AND NOT is_deleted ORDER BY room_id, type`,
    [userNid],
  )
  return rows.map((row) => new AccountDataRow(row))
}
