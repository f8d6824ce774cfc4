import type { UserId } from '../../core/ids.ts'
import type { JsonValue } from '../../core/json.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: profile_field, matrix_user, account

export type ProfileFields = Readonly<Record<string, JsonValue>>

/** The fields of a user of this server; undefined when there is no such account. */
export async function findProfile(reader: Reader, userId: UserId): Promise<ProfileFields | undefined> {
  const rows = await reader.query<{ name: string | null; value: string | null }>(
    `SELECT p.name, p.value FROM matrix_user u JOIN account a USING (user_nid) LEFT JOIN profile_field p USING (user_nid)
     WHERE u.user_id = $1`,
    [userId],
  )
  if (rows.length === 0) return undefined
  return Object.fromEntries(
    rows.flatMap(({ name, value }) => (name === null ? [] : [[name, JSON.parse(value ?? 'null')]])),
  )
}

export async function setProfileField(tx: Tx, userNid: number, name: string, value: JsonValue): Promise<void> {
  await tx.query(
    `INSERT INTO profile_field (user_nid, name, value) VALUES ($1, $2, $3)
     ON CONFLICT (user_nid, name) DO UPDATE SET value = EXCLUDED.value`,
    [userNid, name, JSON.stringify(value)],
  )
}

export async function deleteProfileField(tx: Tx, userNid: number, name: string): Promise<void> {
  await tx.query('DELETE FROM profile_field WHERE user_nid = $1 AND name = $2', [userNid, name])
}
