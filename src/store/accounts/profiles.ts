import type { UserId } from '../../core/ids.ts'
import type { JsonValue } from '../../core/json.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: profile_field, matrix_user, account

export type ProfileFields = Readonly<Record<string, JsonValue>>

/** Null or undefined removes a field. */
export type ProfileChanges = Readonly<Record<string, JsonValue | undefined>>

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

/** Sets the fields that have a value and removes the others. */
export async function changeProfile(tx: Tx, userNid: number, changes: ProfileChanges): Promise<void> {
  const set = Object.entries(changes).filter(([, value]) => value !== undefined && value !== null)
  const removed = Object.keys(changes).filter((name) => changes[name] === undefined || changes[name] === null)
  await tx.query(
    `WITH removed AS (DELETE FROM profile_field WHERE user_nid = $1 AND name = ANY($4::text[]))
     INSERT INTO profile_field (user_nid, name, value) SELECT $1, name, value FROM unnest($2::text[], $3::text[]) AS t (name, value)
     ON CONFLICT (user_nid, name) DO UPDATE SET value = EXCLUDED.value`,
    [userNid, set.map(([name]) => name), set.map(([, value]) => JSON.stringify(value)), removed],
  )
}
