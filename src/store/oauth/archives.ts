import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: own_data_archive, matrix_user

export interface ArchiveRow {
  readonly user_nid: number
  readonly user_id: UserId
  readonly file: string
  readonly requested_at: number
  /** JSON; null once the archive is complete. */
  readonly next_part: string | null
  readonly bytes: number
  readonly failures: number
  readonly expires_at: number
}

const COLUMNS = 'a.user_nid, u.user_id, a.file, a.requested_at, a.next_part, a.bytes, a.failures, a.expires_at'
const ARCHIVES = 'own_data_archive a JOIN matrix_user u USING (user_nid)'

export async function findArchive(reader: Reader, userNid: number): Promise<ArchiveRow | undefined> {
  const [row] = await reader.query<ArchiveRow>(`SELECT ${COLUMNS} FROM ${ARCHIVES} WHERE a.user_nid = $1`, [userNid])
  return row
}

/** Those that are to be made now, the oldest first. */
export function dueArchives(reader: Reader, now: number, atMost: number): Promise<ArchiveRow[]> {
  return reader.query<ArchiveRow>(
    `SELECT ${COLUMNS} FROM ${ARCHIVES} WHERE a.next_part IS NOT NULL AND a.due_at <= $1
     ORDER BY a.due_at, a.user_nid LIMIT $2`,
    [now, atMost],
  )
}

/** How many there are, also those whose file is gone. */
export async function countArchives(reader: Reader): Promise<number> {
  const [row] = await reader.query<{ count: number }>('SELECT count(*)::int AS count FROM own_data_archive', [])
  return row!.count
}

export interface NewArchive {
  readonly userNid: number
  readonly file: string
  readonly now: number
  readonly firstPart: string
  readonly expiresAt: number
}

/** Asks for an archive; false if the user has asked for one after a moment. */
export async function insertArchive(
  tx: Tx,
  { userNid, file, now, firstPart, expiresAt }: NewArchive,
  since: number,
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO own_data_archive AS a (user_nid, file, requested_at, next_part, bytes, due_at, failures, expires_at)
     VALUES ($1, $2, $3, $4, 0, $3, 0, $5)
     ON CONFLICT (user_nid) DO UPDATE SET file = excluded.file, requested_at = excluded.requested_at,
       next_part = excluded.next_part, bytes = 0, due_at = excluded.due_at, failures = 0, expires_at = excluded.expires_at
     WHERE a.requested_at < $6 RETURNING 1 AS one`,
    [userNid, file, now, firstPart, expiresAt, since],
  )
  return rows.length === 1
}

/** Records how far an archive is; false if it is not wanted any more. @param nextPart null: it is complete */
export async function recordArchive(
  tx: Tx,
  { user_nid, file }: Pick<ArchiveRow, 'user_nid' | 'file'>,
  is: { readonly nextPart: string | null; readonly bytes: number; readonly expiresAt: number },
): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE own_data_archive SET next_part = $3, bytes = $4, expires_at = $5, failures = 0
     WHERE user_nid = $1 AND file = $2 AND next_part IS NOT NULL RETURNING 1 AS one`,
    [user_nid, file, is.nextPart, is.bytes, is.expiresAt],
  )
  return rows.length === 1
}

/** Has an archive continued later, after a failure. */
export async function postponeArchive(
  tx: Tx,
  { user_nid, file }: Pick<ArchiveRow, 'user_nid' | 'file'>,
  dueAt: number,
): Promise<void> {
  await tx.query('UPDATE own_data_archive SET due_at = $3, failures = failures + 1 WHERE user_nid = $1 AND file = $2', [
    user_nid,
    file,
    dueAt,
  ])
}

/** Ends an archive at once. The row stays for a while: it says when the user may ask again. */
export async function endArchive(tx: Tx, userNid: number, now: number): Promise<void> {
  await tx.query('UPDATE own_data_archive SET next_part = NULL, bytes = 0, expires_at = $2 WHERE user_nid = $1', [
    userNid,
    now,
  ])
}

/** The files that are wanted. */
export async function archiveFiles(reader: Reader, now: number): Promise<Set<string>> {
  const rows = await reader.query<{ file: string }>('SELECT file FROM own_data_archive WHERE expires_at > $1', [now])
  return new Set(rows.map(({ file }) => file))
}

/** Forgets those that have expired and were asked for before a moment. Gives how many. */
export async function forgetArchives(tx: Tx, now: number, askedBefore: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM own_data_archive WHERE user_nid = ANY(ARRAY(
       SELECT user_nid FROM own_data_archive WHERE expires_at <= $1 AND requested_at < $2 LIMIT $3)) RETURNING 1 AS one`,
    [now, askedBefore, atMost],
  )
  return rows.length
}
