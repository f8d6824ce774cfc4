import type { UserId } from '../../core/ids.ts'
import type { Medium } from '../../core/threepid.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: user_threepid, account, pusher, matrix_user

/** Addresses are in the spelling of `normaliseAddress`; times in milliseconds. */
export interface UserThreepidRow {
  readonly medium: Medium
  readonly address: string
  readonly validated_at: number
  readonly added_at: number
}

export interface ThreepidOwner {
  readonly user_nid: number
  readonly user_id: UserId
  /** Since when. */
  readonly added_at: number
}

/** Whose account an address belongs to. */
export async function findThreepidOwner(
  reader: Reader,
  medium: string,
  address: string,
): Promise<ThreepidOwner | undefined> {
  const [row] = await reader.query<ThreepidOwner>(
    `SELECT t.user_nid, u.user_id, t.added_at FROM user_threepid t JOIN matrix_user u USING (user_nid)
     WHERE t.medium = $1 AND t.address = $2`,
    [medium, address],
  )
  return row
}

/** The addresses of an account, the oldest first. */
export async function listUserThreepids(reader: Reader, userNid: number): Promise<UserThreepidRow[]> {
  return reader.query<UserThreepidRow>(
    `SELECT medium, address, validated_at, added_at FROM user_threepid WHERE user_nid = $1
     ORDER BY added_at, medium, address`,
    [userNid],
  )
}

/** Adds an address to an account. False if another account has it, or this one has `atMost` addresses. */
export async function insertUserThreepid(
  tx: Tx,
  userNid: number,
  threepid: UserThreepidRow,
  atMost: number,
): Promise<boolean> {
  const { medium, address, validated_at, added_at } = threepid
  const rows = await tx.query(
    `INSERT INTO user_threepid AS t (medium, address, user_nid, validated_at, added_at)
     SELECT $1, $2, $3, $4, $5 WHERE (SELECT count(*) FROM user_threepid WHERE user_nid = $3) < $6
     ON CONFLICT (medium, address) DO UPDATE SET validated_at = excluded.validated_at WHERE t.user_nid = $3
     RETURNING 1 AS one`,
    [medium, address, userNid, validated_at, added_at, atMost],
  )
  return rows.length === 1
}

/** Removes an address, and the pushers that send mails to it. Gives whether the account had the address. */
export async function deleteUserThreepid(tx: Tx, userNid: number, medium: string, address: string): Promise<boolean> {
  const rows = await tx.query(
    `WITH mails AS (DELETE FROM pusher WHERE user_nid = $1 AND kind = 'email' AND $2 = 'email' AND pushkey = $3)
     DELETE FROM user_threepid WHERE user_nid = $1 AND medium = $2 AND address = $3 RETURNING 1 AS one`,
    [userNid, medium, address],
  )
  return rows.length === 1
}

export async function deleteUserThreepids(tx: Tx, userNid: number): Promise<void> {
  await tx.query('DELETE FROM user_threepid WHERE user_nid = $1', [userNid])
}
