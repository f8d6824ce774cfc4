import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Tables: directory_user, directory_word; read: matrix_user, account, profile_field

/** What the directory holds of a user. */
export interface DirectoryUser {
  readonly userNid: number
  readonly displayName: string | undefined
  readonly avatarUrl: string | undefined
  /** The member event that told this; 0 for users of this server. */
  readonly eventNid: number
  readonly words: readonly string[]
}

/** Has all others who write into the directory wait, so that what is read from here on is not older than what they write. */
export async function holdDirectory(tx: Tx): Promise<void> {
  await tx.query('LOCK TABLE directory_user IN SHARE ROW EXCLUSIVE MODE')
}

/** Writes users over what was there, unless a newer event told it. */
export async function putDirectoryUsers(tx: Tx, users: readonly DirectoryUser[]): Promise<void> {
  if (users.length === 0) return
  const written = await tx.query<{ user_nid: number }>(
    `INSERT INTO directory_user (user_nid, display_name, avatar_url, event_nid)
     SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[])
     ON CONFLICT (user_nid) DO UPDATE
     SET display_name = EXCLUDED.display_name, avatar_url = EXCLUDED.avatar_url, event_nid = EXCLUDED.event_nid
     WHERE directory_user.event_nid <= EXCLUDED.event_nid
     RETURNING user_nid`,
    [
      users.map(({ userNid }) => userNid),
      users.map(({ displayName }) => displayName ?? null),
      users.map(({ avatarUrl }) => avatarUrl ?? null),
      users.map(({ eventNid }) => eventNid),
    ],
  )
  const isWritten = new Set(written.map(({ user_nid }) => user_nid))
  const words = users.flatMap(({ userNid, words }) =>
    isWritten.has(userNid) ? words.map((word) => ({ word, userNid })) : [],
  )
  const rows = [words.map(({ word }) => word), words.map(({ userNid }) => userNid)]
  await tx.query(
    `DELETE FROM directory_word w WHERE user_nid = ANY ($3::bigint[])
       AND NOT EXISTS (SELECT FROM unnest($1::text[], $2::bigint[]) AS t (word, nid) WHERE t.word = w.word AND t.nid = w.user_nid)`,
    [...rows, [...isWritten]],
  )
  await tx.query(
    `INSERT INTO directory_word (word, user_nid) SELECT * FROM unnest($1::text[], $2::bigint[]) ON CONFLICT DO NOTHING`,
    rows,
  )
}

export interface LocalProfile {
  readonly user_nid: number
  readonly user_id: UserId
  /** JSON */
  readonly displayname: string | null
  /** JSON */
  readonly avatar_url: string | null
}

/** The names of local users, by number: those of `userNids`, or the first `limit` after one of them. */
export function localProfiles(
  reader: Reader,
  wanted: { readonly userNids: readonly number[] } | { readonly after: number; readonly limit: number },
): Promise<LocalProfile[]> {
  const isAll = 'after' in wanted
  return reader.query<LocalProfile>(
    `SELECT user_nid, user_id,
       (SELECT value FROM profile_field p WHERE p.user_nid = a.user_nid AND name = 'displayname') AS displayname,
       (SELECT value FROM profile_field p WHERE p.user_nid = a.user_nid AND name = 'avatar_url') AS avatar_url
     FROM account a JOIN matrix_user USING (user_nid)
     WHERE ${isAll ? 'user_nid > $1' : 'user_nid = ANY ($1::bigint[])'} AND deactivated_at IS NULL
     ORDER BY user_nid LIMIT $2`,
    isAll ? [wanted.after, wanted.limit] : [wanted.userNids, wanted.userNids.length],
  )
}
