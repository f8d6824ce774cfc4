import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: web_session, account, matrix_user

export interface WebSessionRow {
  readonly user_nid: number
  readonly user_id: UserId
  readonly is_locked: boolean
  readonly is_suspended: boolean
  readonly proven_at: number
  readonly used_at: number
}

/** SHA-256 of the password's hash, or of nothing. */
const STAMP = `sha256(convert_to(coalesce(a.password_hash, ''), 'UTF8'))`

/** Signs a browser in. Beyond so many browsers, the one that was unused for longest is signed out. */
export async function insertWebSession(
  tx: Tx,
  session: { readonly hash: Buffer; readonly userNid: number; readonly provenAt: number; readonly now: number },
  mostPerUser: number,
): Promise<void> {
  await tx.query(
    `DELETE FROM web_session WHERE session_hash IN (
       SELECT session_hash FROM web_session WHERE user_nid = $1 ORDER BY used_at DESC OFFSET $2)`,
    [session.userNid, mostPerUser - 1],
  )
  await tx.query(
    `INSERT INTO web_session (session_hash, user_nid, password_stamp, created_at, proven_at, used_at)
     SELECT $1, a.user_nid, ${STAMP}, $3, $4, $3 FROM account a WHERE a.user_nid = $2`,
    [session.hash, session.userNid, session.now, session.provenAt],
  )
}

/** Who is signed in; nobody once the account is deactivated or has another password. */
export async function findWebSession(
  reader: Reader,
  hash: Buffer,
  since: { readonly usedAt: number; readonly createdAt: number },
): Promise<WebSessionRow | undefined> {
  const [row] = await reader.query<WebSessionRow>(
    `SELECT w.user_nid, u.user_id, a.is_locked, a.is_suspended, w.proven_at, w.used_at
     FROM web_session w JOIN account a USING (user_nid) JOIN matrix_user u USING (user_nid)
     WHERE w.session_hash = $1 AND w.used_at > $2 AND w.created_at > $3 AND a.deactivated_at IS NULL AND w.password_stamp = ${STAMP}`,
    [hash, since.usedAt, since.createdAt],
  )
  return row
}

export async function touchWebSession(tx: Tx, hash: Buffer, now: number): Promise<void> {
  await tx.query('UPDATE web_session SET used_at = $2 WHERE session_hash = $1', [hash, now])
}

/** Notes that the person in a browser has proved again who they are. */
export async function proveWebSession(tx: Tx, hash: Buffer, provenAt: number): Promise<void> {
  await tx.query('UPDATE web_session SET proven_at = greatest(proven_at, $2) WHERE session_hash = $1', [hash, provenAt])
}

/** Keeps one browser of a user signed in although the password has just changed. */
export async function restampWebSession(tx: Tx, hash: Buffer): Promise<void> {
  await tx.query(
    `UPDATE web_session w SET password_stamp = ${STAMP} FROM account a WHERE a.user_nid = w.user_nid AND w.session_hash = $1`,
    [hash],
  )
}

export async function deleteWebSession(tx: Tx, hash: Buffer): Promise<void> {
  await tx.query('DELETE FROM web_session WHERE session_hash = $1', [hash])
}

export async function deleteWebSessionsOf(tx: Tx, userNid: number): Promise<void> {
  await tx.query('DELETE FROM web_session WHERE user_nid = $1', [userNid])
}

/** Gives how many were removed. */
export async function forgetWebSessions(tx: Tx, usedBefore: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM web_session WHERE session_hash IN (
       SELECT session_hash FROM web_session WHERE used_at < $1 LIMIT $2) RETURNING 1 AS one`,
    [usedBefore, atMost],
  )
  return rows.length
}
