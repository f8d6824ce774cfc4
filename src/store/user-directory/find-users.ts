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
  /** How many words that begin as the longest one searched are looked at, and of how many users. */
  readonly wordsLookedAt: number
  readonly candidates: number
  /** If there are as many such words as users that are looked at, how many people in rooms with the searcher are looked at as well. */
  readonly company: number
  readonly limit: number
}

export interface FoundUser {
  readonly user_id: UserId
  readonly display_name: string | null
  readonly avatar_url: string | null
}

/** The end of the range of words that begin like one. */
const LAST = '\u{10ffff}'

/** Whether a row of this name has, for each searched word but the longest, a word that begins so. */
const hasOthers = (alias: string): string =>
  `NOT EXISTS (SELECT FROM unnest($3::text[]) AS t (part) WHERE NOT EXISTS (
     SELECT FROM directory_word o WHERE o.user_nid = ${alias}.user_nid AND o.word >= part AND o.word < part || '${LAST}'))`

/** `OFFSET 0`: for each user alone, as only a few are asked for. Otherwise the members of all these rooms are read first. */
const isIn = (rooms: string): string => `EXISTS (SELECT FROM room_member theirs JOIN ${rooms} USING (room_nid)
         WHERE theirs.user_nid = ranked.user_nid AND theirs.membership = 'join' OFFSET 0)`

/** Looked up in the order of the ranks, until there are enough: for all it would cost more than ranking them. */
const isAccount = (which: string): string =>
  `EXISTS (SELECT FROM account a WHERE a.user_nid = ranked.user_nid AND ${which} OFFSET 0)`

/**
 * The users whom somebody may see and whose words begin with all those searched for, the best first: those with whole words as searched, those
 * whose localpart begins so, those with a name, those with a picture. If more words begin so than users are looked at, those in a room with
 * the searcher are looked at as well.
 */
export function findUsers(reader: Reader, query: DirectoryQuery): Promise<FoundUser[]> {
  const { byNid, words, server, localpart, ignored, isAllLocal, limit } = query
  const { candidates, company } = query
  // The longest word has the fewest users.
  const [first, ...others] = words.toSorted((a, b) => b.length - a.length)
  const wordsLookedAt = others.length === 0 ? candidates : query.wordsLookedAt
  return reader.query<FoundUser>(
    `WITH begun AS MATERIALIZED (
       SELECT user_nid, word = $2 AS is_whole FROM directory_word WHERE word >= $2 AND word < $2 || '${LAST}' ORDER BY word LIMIT $4
     ), company AS MATERIALIZED (
       SELECT theirs.user_nid FROM room_member own CROSS JOIN LATERAL (
         SELECT user_nid FROM room_member WHERE room_nid = own.room_nid AND membership = 'join' LIMIT $6) AS theirs
       WHERE own.user_nid = $1 AND own.membership = 'join' AND (SELECT count(*) FROM begun) >= $5 LIMIT $6
     ), candidate AS MATERIALIZED (
       SELECT user_nid, bool_or(is_whole) AS is_whole FROM (
         (SELECT user_nid, is_whole FROM begun WHERE ${hasOthers('begun')} LIMIT $5)
         UNION ALL
         SELECT d.user_nid, d.word = $2 FROM directory_word d
         WHERE d.user_nid = ANY (ARRAY(SELECT user_nid FROM company)) AND d.word >= $2 AND d.word < $2 || '${LAST}' AND ${hasOthers('d')}
       ) AS either GROUP BY user_nid
     )
     SELECT user_id, display_name, avatar_url FROM (
       SELECT user_nid, user_id, display_name, avatar_url FROM (
         SELECT c.user_nid, u.user_id, d.display_name, d.avatar_url, c.is_whole
         FROM candidate c JOIN directory_user d USING (user_nid) JOIN matrix_user u USING (user_nid)
         WHERE c.user_nid <> $1 AND u.user_id NOT IN (SELECT unnest($7::text[]))
           AND ($8::text IS NULL OR (starts_with(lower(substr(u.user_id, 2)), $9)
             AND starts_with(substr(u.user_id, strpos(u.user_id, ':') + 1), $8)))
       ) AS present
       ORDER BY is_whole DESC, starts_with(lower(substr(user_id, 2)), $9) DESC, display_name IS NULL, avatar_url IS NULL, user_id
       OFFSET 0
     ) AS ranked
     WHERE NOT ${isAccount('(a.deactivated_at IS NOT NULL OR a.erased_at IS NOT NULL OR a.is_locked)')}
       AND (($10 AND ${isAccount('true')}) OR ${isIn("(SELECT room_nid FROM room_member WHERE user_nid = $1 AND membership = 'join') AS own")}
         OR ${isIn('open_room')})
     LIMIT $11`,
    [byNid, first, others, wordsLookedAt, candidates, company, ignored, server ?? null, localpart, isAllLocal, limit],
  )
}
