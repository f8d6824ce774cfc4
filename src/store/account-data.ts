import type { JsonObject } from '../core/json.ts'
import type { Reader, Tx } from './db.ts'

// Table: account_data

export interface AccountDataRow {
  /** '' for the account's own. */
  readonly room_id: string
  readonly type: string
  readonly content: JsonObject
  readonly position: number
}

interface StoredRow {
  readonly room_id: string
  readonly type: string
  readonly content: string
  readonly position: number
}

export async function findAccountData(
  reader: Reader,
  userNid: number,
  roomId: string,
  type: string,
): Promise<JsonObject | undefined> {
  const [row] = await reader.query<{ content: string }>(
    'SELECT content FROM account_data WHERE user_nid = $1 AND room_id = $2 AND type = $3',
    [userNid, roomId, type],
  )
  return row && (JSON.parse(row.content) as JsonObject)
}

/** What a user keeps that was last written after `after`, up to and with `upTo`, in the order of writing. */
export async function accountDataBetween(
  reader: Reader,
  userNid: number,
  after: number,
  upTo: number,
): Promise<AccountDataRow[]> {
  const rows = await reader.query<StoredRow>(
    `SELECT room_id, type, content, position FROM account_data
     WHERE user_nid = $1 AND position > $2 AND position <= $3 ORDER BY position`,
    [userNid, after, upTo],
  )
  return rows.map((row) => ({ ...row, content: JSON.parse(row.content) as JsonObject }))
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
     ON CONFLICT (user_nid, room_id, type) DO UPDATE SET content = EXCLUDED.content, position = EXCLUDED.position`,
    [data.userNid, data.roomId, data.type, data.content, data.position],
  )
}

/** How many pieces a user keeps. */
export async function countAccountData(reader: Reader, userNid: number): Promise<number> {
  const [row] = await reader.query<{ count: number }>(
    'SELECT count(*) AS count FROM account_data WHERE user_nid = $1',
    [userNid],
  )
  return row?.count ?? 0
}

/** Everything that a user keeps. */
export async function listAccountData(reader: Reader, userNid: number): Promise<AccountDataRow[]> {
  const rows = await reader.query<StoredRow>(
    'SELECT room_id, type, content, position FROM account_data WHERE user_nid = $1 ORDER BY room_id, type',
    [userNid],
  )
  return rows.map((row) => ({ ...row, content: JSON.parse(row.content) as JsonObject }))
}
