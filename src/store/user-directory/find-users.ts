import type { UserId } from '../../core/ids.ts'
import type { Reader } from '../db/db.ts'

// Read: directory_user, directory_word, open_room, matrix_user, account, room_member

export interface DirectoryQuery {
  readonly byNid: number
  /** Folded; at least one. All of them begin words of the user. */
  readonly words: readonly string[]
  /** How the user's server begins, if an id is searched for: then the localpart must begin as searched. */
  readonly server: string | undefined
  /** The searched beginning of the localpart, folded. */
  readonly localpart: string
  /** Users who are left out. */
  readonly ignored: readonly string[]
  /** Whether all local users are found by everyone. */
  readonly isAllLocal: boolean
  /** Words that begin as searched, and people in rooms with the searcher, that are looked at. */
  readonly candidates: number
  readonly limit: number
}

export interface FoundUser {
  readonly user_id: UserId
  readonly display_name: string | null
  readonly avatar_url: string | null
}

/** The end of the range of words that begin like one. */
const LAST = '\u{10ffff}'

/**
 * The users whom somebody may see and whose words begin with all those searched for, the best first: those with whole words as searched, those
 * whose localpart begins so, those with a name, those with a picture. If more words begin so than are looked at, those in a room with the
 * searcher are looked at as well.
 */
export function findUsers(reader: Reader, query: DirectoryQuery): Promise<FoundUser[]> {
  const { byNid, words, server, localpart, ignored, isAllLocal, candidates, limit } = query
  // The longest word has the fewest users.
  const [first, ...others] = words.toSorted((a, b) => b.length - a.length)
  return reader.query<FoundUser>(
    `WITH matching AS MATERIALIZED (
       SELECT user_nid, word = $2 AS is_whole FROM directory_word w WHERE word >= $2 AND word < $2 || '${LAST}'
         AND NOT EXISTS (
           SELECT FROM unnest($3::text[]) AS t (part) WHERE NOT EXISTS (
             SELECT FROM directory_word o WHERE o.user_nid = w.user_nid AND o.word >= part AND o.word < part || '${LAST}'))
       ORDER BY word LIMIT $4
     ), company AS (
       SELECT DISTINCT theirs.user_nid FROM room_member own JOIN room_member theirs USING (room_nid)
       WHERE own.user_nid = $1 AND own.membership = 'join' AND theirs.membership = 'join' LIMIT $4
     ), candidate AS MATERIALIZED (
       SELECT user_nid, bool_or(is_whole) AS is_whole FROM (
         SELECT * FROM matching
         UNION ALL
         SELECT user_nid, EXISTS (SELECT FROM directory_word w WHERE w.user_nid = company.user_nid AND w.word = $2) FROM company
         WHERE (SELECT count(*) FROM matching) >= $4 AND NOT EXISTS (
           SELECT FROM unnest($2 || $3::text[]) AS t (part) WHERE NOT EXISTS (
             SELECT FROM directory_word o WHERE o.user_nid = company.user_nid AND o.word >= part AND o.word < part || '${LAST}'))
       ) AS either GROUP BY user_nid
     )
     SELECT user_id, display_name, avatar_url FROM (
       SELECT user_nid, user_id, display_name, avatar_url, is_local FROM (
         SELECT c.user_nid, u.user_id, d.display_name, d.avatar_url, c.is_whole, a.user_nid IS NOT NULL AS is_local
         FROM candidate c JOIN directory_user d USING (user_nid) JOIN matrix_user u USING (user_nid)
         LEFT JOIN account a USING (user_nid)
         WHERE a.deactivated_at IS NULL AND a.erased_at IS NULL AND NOT COALESCE(a.is_locked, false)
           AND c.user_nid <> $1 AND u.user_id <> ALL ($5::text[])
           AND ($6::text IS NULL OR (starts_with(lower(substr(u.user_id, 2)), $7)
             AND starts_with(substr(u.user_id, strpos(u.user_id, ':') + 1), $6)))
       ) AS present
       ORDER BY is_whole DESC, starts_with(lower(substr(user_id, 2)), $7) DESC, display_name IS NULL, avatar_url IS NULL, user_id
       OFFSET 0
     ) AS ranked
     WHERE ($8 AND is_local)
       OR EXISTS (SELECT FROM room_member theirs JOIN room_member own USING (room_nid)
         WHERE theirs.user_nid = ranked.user_nid AND theirs.membership = 'join' AND own.user_nid = $1 AND own.membership = 'join')
       OR EXISTS (SELECT FROM room_member theirs JOIN open_room USING (room_nid)
         WHERE theirs.user_nid = ranked.user_nid AND theirs.membership = 'join')
     LIMIT $9`,
    [byNid, first, others, candidates, ignored, server ?? null, localpart, isAllLocal, limit],
  )
}
