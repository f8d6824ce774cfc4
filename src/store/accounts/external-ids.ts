import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: user_external_id, account, matrix_user

/** The account of a person at a provider. */
export interface ExternalAccountRow {
  readonly user_nid: number
  readonly user_id: UserId
  readonly deactivated_at: number | null
}

export async function findExternalAccount(
  reader: Reader,
  provider: string,
  subject: string,
): Promise<ExternalAccountRow | undefined> {
  const [row] = await reader.query<ExternalAccountRow>(
    `SELECT e.user_nid, u.user_id, a.deactivated_at
     FROM user_external_id e JOIN account a USING (user_nid) JOIN matrix_user u USING (user_nid)
     WHERE e.provider = $1 AND e.subject = $2`,
    [provider, subject],
  )
  return row
}

/** The providers by which a user can sign in. */
export async function findProvidersOf(reader: Reader, userNid: number): Promise<string[]> {
  const rows = await reader.query<{ provider: string }>(
    'SELECT DISTINCT provider FROM user_external_id WHERE user_nid = $1',
    [userNid],
  )
  return rows.map(({ provider }) => provider)
}

/** Links a person at a provider to an account; false if the person is linked already. */
export async function insertExternalId(
  tx: Tx,
  link: { readonly provider: string; readonly subject: string; readonly userNid: number; readonly createdAt: number },
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO user_external_id (provider, subject, user_nid, created_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (provider, subject) DO NOTHING RETURNING user_nid`,
    [link.provider, link.subject, link.userNid, link.createdAt],
  )
  return rows.length === 1
}

/** The external ids of an account. */
export function listExternalIds(
  reader: Reader,
  userNid: number,
): Promise<{ readonly provider: string; readonly subject: string }[]> {
  return reader.query('SELECT provider, subject FROM user_external_id WHERE user_nid = $1 ORDER BY provider, subject', [
    userNid,
  ])
}

export async function deleteExternalIds(tx: Tx, userNid: number): Promise<void> {
  await tx.query('DELETE FROM user_external_id WHERE user_nid = $1', [userNid])
}
