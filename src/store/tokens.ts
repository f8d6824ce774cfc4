import type { UserId } from '../core/ids.ts'
import type { Reader, Tx } from './db.ts'

// Tables: access_token, account, matrix_user

export interface TokenRow {
  readonly token_nid: number
  readonly user_nid: number
  readonly user_id: UserId
  readonly device_id: string
  readonly is_guest: boolean
}

/** Whom a token belongs to, by its hash; nobody once the account is deactivated. */
export async function findToken(reader: Reader, hash: Buffer): Promise<TokenRow | undefined> {
  const [row] = await reader.query<TokenRow>(
    `SELECT t.token_nid, t.user_nid, u.user_id, t.device_id, a.is_guest
     FROM access_token t JOIN account a USING (user_nid) JOIN matrix_user u USING (user_nid)
     WHERE t.token_hash = $1 AND a.deactivated_at IS NULL`,
    [hash],
  )
  return row
}

/** Gives the device this token; the one it had before stops working. */
export async function replaceToken(
  tx: Tx,
  token: {
    readonly hash: Buffer
    readonly userNid: number
    readonly deviceId: string
    readonly createdAt: number
  },
): Promise<void> {
  await tx.query('DELETE FROM access_token WHERE user_nid = $1 AND device_id = $2', [token.userNid, token.deviceId])
  await tx.query('INSERT INTO access_token (token_hash, user_nid, device_id, created_at) VALUES ($1, $2, $3, $4)', [
    token.hash,
    token.userNid,
    token.deviceId,
    token.createdAt,
  ])
}
