import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'
import { decodable } from '../db/decodable.ts'
import { MEDIA_COLUMNS, type MediaRow } from './media.ts'

// Tables: media, media_content, media_usage, quarantine_change, matrix_user, profile_field, event

const ORDERS = {
  media_id: 'm.media_id',
  upload_name: 'm.file_name',
  created_ts: 'm.created_at',
  last_access_ts: 'm.seen_at',
  media_length: 'c.bytes',
  media_type: 'm.content_type',
  quarantined_by: 'c.quarantined_by',
  safe_from_quarantine: 'm.is_protected',
} as const

export type MediaOrder = keyof typeof ORDERS

export interface Page {
  readonly from: number
  readonly limit: number
  readonly isDescending: boolean
}

const direction = (isDescending: boolean) => (isDescending ? 'DESC' : 'ASC')

/** The files that a user has uploaded. */
export async function listMediaOf(
  reader: Reader,
  userNid: number,
  order: MediaOrder,
  { from, limit, isDescending }: Page,
): Promise<{ readonly total: number; readonly media: MediaRow[] }> {
  const [counted] = await reader.query<{ total: number }>(
    'SELECT count(*) AS total FROM media WHERE user_nid = $1 AND digest IS NOT NULL',
    [userNid],
  )
  const way = direction(isDescending)
  const media = await reader.query<MediaRow>(
    `SELECT ${MEDIA_COLUMNS} FROM media m JOIN media_content c USING (digest) WHERE m.user_nid = $1
     ORDER BY ${ORDERS[order]} ${way} NULLS LAST, m.media_nid ${way} LIMIT $2 OFFSET $3`,
    [userNid, limit, from],
  )
  return { total: counted?.total ?? 0, media }
}

const USAGE_ORDERS = ['user_id', 'displayname', 'media_length', 'media_count'] as const

export type UsageOrder = (typeof USAGE_ORDERS)[number]

export interface UserUsage {
  readonly user_id: UserId
  readonly displayname: string | null
  readonly media_count: number
  readonly media_length: number
}

const USED_EVER = 'SELECT user_nid, files AS media_count, bytes AS media_length FROM media_usage WHERE files > 0'

/** What was uploaded in a time, which must be counted. Adds the values that it needs. */
function usedIn(after: number | undefined, until: number | undefined, values: unknown[]): string {
  values.push(after ?? 0, until ?? Number.MAX_SAFE_INTEGER)
  return `SELECT m.user_nid, count(*) AS media_count, sum(c.bytes)::bigint AS media_length
    FROM media m JOIN media_content c USING (digest)
    WHERE m.user_nid IS NOT NULL AND m.created_at BETWEEN $${values.length - 1} AND $${values.length} GROUP BY m.user_nid`
}

/** Totals of uploads for each user. Use a connection for long queries. */
export async function surveyUsage(
  reader: Reader,
  query: { readonly term: string | undefined; readonly after: number | undefined; readonly until: number | undefined },
  order: UsageOrder,
  { from, limit, isDescending }: Page,
): Promise<{ readonly total: number; readonly users: UserUsage[] }> {
  const way = direction(isDescending)
  // Names of all users are read only where they choose or order.
  const isNamed = query.term !== undefined || order === 'user_id' || order === 'displayname'
  const isShown = query.term !== undefined || order === 'displayname'
  const shown = isShown ? `LEFT JOIN profile_field p ON p.user_nid = used.user_nid AND p.name = 'displayname'` : ''
  const displayname = `${decodable('p.value')} #>> '{}'`
  const chosen =
    query.term === undefined
      ? ''
      : `WHERE strpos(lower(u.user_id), lower($3)) > 0 OR strpos(lower(${displayname}), lower($3)) > 0`
  const place = { user_id: 'u.user_id', displayname, media_length: 'media_length', media_count: 'media_count' }[order]
  const isOfTime = query.after !== undefined || query.until !== undefined
  const values = [limit, from, ...(query.term === undefined ? [] : [query.term])]
  const used = isOfTime ? usedIn(query.after, query.until, values) : USED_EVER
  const rows = await reader.query<UserUsage & { readonly total: number }>(
    `WITH used AS (${used}),
     found AS MATERIALIZED (
       SELECT used.user_nid, media_count, media_length, ${place} AS place
       FROM used ${isNamed ? 'JOIN matrix_user u USING (user_nid)' : ''} ${shown} ${chosen}),
     page AS (SELECT * FROM found ORDER BY place ${way} NULLS LAST, user_nid LIMIT $1 OFFSET $2)
     SELECT user_id, media_count, media_length, (SELECT count(*) FROM found) AS total,
       (SELECT ${decodable('value')} #>> '{}' FROM profile_field f WHERE f.user_nid = page.user_nid AND f.name = 'displayname') AS displayname
     FROM page JOIN matrix_user USING (user_nid) ORDER BY place ${way} NULLS LAST, user_nid`,
    values,
  )
  const users = rows.map(({ total: _total, ...user }) => user)
  return { total: rows[0]?.total ?? from, users }
}

/** Files of our users from before a time and above a size, however they are used, in order of their numbers. */
export function oldLocalMedia(
  reader: Reader,
  ownServer: string,
  wanted: { readonly before: number; readonly above: number; readonly after: number },
  atMost: number,
): Promise<{ media_nid: number; media_id: string }[]> {
  return reader.query(
    `SELECT m.media_nid, m.media_id FROM media m JOIN media_content c USING (digest)
     WHERE m.server_name = $1 AND m.seen_at < $2 AND c.bytes > $3 AND m.media_nid > $4 AND NOT m.is_protected
       AND c.quarantined_by IS NULL
     ORDER BY m.media_nid LIMIT $5`,
    [ownServer, wanted.before, wanted.above, wanted.after, atMost],
  )
}

/** Hides files and all files with the same content, except protected ones, and notes which. Gives how many. */
export async function quarantine(tx: Tx, mediaNids: readonly number[], by: string, at: number): Promise<number> {
  const rows = await tx.query<{ hidden: number }>(
    `WITH hidden AS (
       UPDATE media_content c SET quarantined_by = $2
       WHERE digest IN (SELECT digest FROM media WHERE media_nid = ANY($1::bigint[])) AND quarantined_by IS NULL
         AND NOT EXISTS (SELECT FROM media m WHERE m.digest = c.digest AND m.is_protected)
       RETURNING digest),
     noted AS (
       INSERT INTO quarantine_change (server_name, media_id, is_quarantined, at)
       SELECT server_name, media_id, true, $3 FROM media WHERE digest IN (SELECT digest FROM hidden) ORDER BY media_nid
       RETURNING 1)
     SELECT count(*) AS hidden FROM noted`,
    [mediaNids, by, at],
  )
  return rows[0]?.hidden ?? 0
}

/** Shows the files with a content again, and notes which. */
export async function unquarantine(tx: Tx, digest: Buffer, at: number): Promise<void> {
  await tx.query(
    `WITH shown AS (
       UPDATE media_content SET quarantined_by = NULL WHERE digest = $1 AND quarantined_by IS NOT NULL RETURNING digest)
     INSERT INTO quarantine_change (server_name, media_id, is_quarantined, at)
     SELECT server_name, media_id, false, $2 FROM media WHERE digest IN (SELECT digest FROM shown) ORDER BY media_nid`,
    [digest, at],
  )
}

export interface QuarantineChange {
  readonly change_nid: number
  readonly origin: string
  readonly media_id: string
  readonly quarantined: boolean
}

/** What was hidden and shown after a change, oldest first. */
export function listQuarantineChanges(reader: Reader, after: number, atMost: number): Promise<QuarantineChange[]> {
  return reader.query<QuarantineChange>(
    `SELECT change_nid, server_name AS origin, media_id, is_quarantined AS quarantined FROM quarantine_change
     WHERE change_nid > $1 ORDER BY change_nid LIMIT $2`,
    [after, atMost],
  )
}

export async function setProtected(tx: Tx, mediaNid: number, isProtected: boolean): Promise<void> {
  await tx.query('UPDATE media SET is_protected = $2 WHERE media_nid = $1', [mediaNid, isProtected])
}

/** The numbers of everything that a user has uploaded. */
export async function mediaNidsOf(reader: Reader, userNid: number): Promise<number[]> {
  const rows = await reader.query<{ media_nid: number }>('SELECT media_nid FROM media WHERE user_nid = $1', [userNid])
  return rows.map(({ media_nid }) => media_nid)
}

/** The numbers of those media that are known. */
export async function findMediaNids(
  reader: Reader,
  names: readonly { readonly server: string; readonly mediaId: string }[],
): Promise<number[]> {
  const rows = await reader.query<{ media_nid: number }>(
    `SELECT media_nid FROM media JOIN unnest($1::text[], $2::text[]) AS named (server_name, media_id) USING (server_name, media_id)`,
    [names.map(({ server }) => server), names.map(({ mediaId }) => mediaId)],
  )
  return rows.map(({ media_nid }) => media_nid)
}

/** The `mxc://` URIs that stand in the events of a room. */
export async function mxcsInRoom(reader: Reader, roomNid: number): Promise<string[]> {
  const rows = await reader.query<{ mxc: string }>(
    `SELECT DISTINCT found[1] AS mxc FROM event e, LATERAL regexp_matches(e.json, '"(mxc://[^"\\\\/]+/[A-Za-z0-9_-]+)', 'g') AS found
     WHERE e.room_nid = $1`,
    [roomNid],
  )
  return rows.map(({ mxc }) => mxc)
}
