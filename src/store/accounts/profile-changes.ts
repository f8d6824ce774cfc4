import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: profile_change; read: profile_field, matrix_user, account, room_member

export interface ProfileChangeRow {
  readonly user_nid: number
  readonly name: string
  readonly position: number
}

/** A field of a user's profile. */
export interface ProfileFieldRow {
  readonly user_id: UserId
  readonly name: string
  /** JSON; null for a field that was removed. */
  readonly value: string | null
}

/**
 * Notes that fields changed at a position of the ledger.
 *
 * @param kept how many removed fields of the user are remembered, the newest
 */
export async function recordProfileChanges(
  tx: Tx,
  change: { readonly userNid: number; readonly names: readonly string[]; readonly position: number },
  kept: number,
): Promise<void> {
  const { userNid, names, position } = change
  await tx.query(
    `INSERT INTO profile_change (user_nid, name, position) SELECT $1, name, $3 FROM unnest($2::text[]) AS name
     ON CONFLICT (user_nid, name) DO UPDATE SET position = excluded.position`,
    [userNid, names, position],
  )
  await tx.query(
    `DELETE FROM profile_change WHERE ctid = ANY (ARRAY(SELECT c.ctid FROM profile_change c WHERE c.user_nid = $1
       AND NOT EXISTS (SELECT FROM profile_field f WHERE f.user_nid = c.user_nid AND f.name = c.name)
       ORDER BY position DESC OFFSET $2))`,
    [userNid, kept],
  )
}

/** Changes after a position and up to another, the oldest first: about `atMost`, but all of each position. */
export function profileChangesBetween(
  reader: Reader,
  after: number,
  upTo: number,
  atMost: number,
): Promise<ProfileChangeRow[]> {
  return reader.query<ProfileChangeRow>(
    `SELECT user_nid, name, position FROM profile_change WHERE position > $1 AND position <= (
       SELECT max(position) FROM (SELECT position FROM profile_change WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3) first)
     ORDER BY position, name`,
    [after, upTo, atMost],
  )
}

/** Those of some users who are in a room with a user. */
export async function whoIsInRoomsWith(
  reader: Reader,
  userNid: number,
  userNids: readonly number[],
): Promise<ReadonlySet<number>> {
  const rows = await reader.query<{ user_nid: number }>(
    `WITH mine AS MATERIALIZED (SELECT room_nid FROM room_member WHERE user_nid = $1 AND membership = 'join')
     SELECT user_nid FROM unnest($2::bigint[]) AS asked (user_nid) WHERE EXISTS (
       SELECT FROM room_member m WHERE m.user_nid = asked.user_nid AND membership = 'join' AND room_nid IN (SELECT room_nid FROM mine))`,
    [userNid, userNids],
  )
  return new Set(rows.map((row) => row.user_nid))
}

/**
 * The fields of changes as they are now, in the order of the changes, up to a total of bytes: the last one may exceed it.
 */
export function changedFields(
  reader: Reader,
  changes: readonly ProfileChangeRow[],
  maxBytes: number,
): Promise<(ProfileFieldRow & { readonly position: number })[]> {
  return reader.query(
    `SELECT user_id, name, position, value FROM (
       SELECT user_id, c.name, c.position, f.value, coalesce(sum(octet_length(f.value)) OVER (
         ORDER BY c.position, c.name ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
       FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS c (user_nid, name, position) JOIN matrix_user USING (user_nid)
         LEFT JOIN profile_field f ON f.user_nid = c.user_nid AND f.name = c.name) field
     WHERE before < $4 ORDER BY position, name`,
    [
      changes.map(({ user_nid }) => user_nid),
      changes.map(({ name }) => name),
      changes.map(({ position }) => position),
      maxBytes,
    ],
  )
}

/**
 * Fields of users of this server, up to a total of bytes.
 *
 * @param names undefined for all
 */
export function fieldsOfUsers(
  reader: Reader,
  userIds: readonly string[],
  names: readonly string[] | undefined,
  maxBytes: number,
): Promise<ProfileFieldRow[]> {
  return reader.query<ProfileFieldRow>(
    `SELECT user_id, name, value FROM (
       SELECT user_id, name, value, sum(octet_length(value)) OVER (ORDER BY user_id, name ROWS UNBOUNDED PRECEDING) AS bytes
       FROM matrix_user JOIN account USING (user_nid) JOIN profile_field USING (user_nid)
       WHERE user_id = ANY ($1::text[]) AND ($2::text[] IS NULL OR name = ANY ($2::text[]))) field
     WHERE bytes <= $3`,
    [userIds, names ?? null, maxBytes],
  )
}
