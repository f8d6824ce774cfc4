import type { Reader, Tx } from '../db/db.ts'
import { decodable } from '../db/decodable.ts'

// Tables: account, media, media_content, media_thumbnail, url_preview, profile_field, state_key, event

/** Removes media and marks their content for the next check. Gives the removed media. */
export async function deleteMedia(
  tx: Tx,
  mediaNids: readonly number[],
): Promise<{ server_name: string; media_id: string }[]> {
  return tx.query<{ server_name: string; media_id: string }>(
    `WITH gone AS (DELETE FROM media WHERE media_nid = ANY($1::bigint[]) RETURNING server_name, media_id, digest),
          loose AS (UPDATE media_content SET is_loose = true WHERE digest IN (SELECT digest FROM gone))
     SELECT server_name, media_id FROM gone`,
    [mediaNids],
  )
}

/** Reserved names without an upload in time, and pictures of expired previews. */
export async function expiredMedia(reader: Reader, now: number, atMost: number): Promise<number[]> {
  const rows = await reader.query<{ media_nid: number }>(
    'SELECT media_nid FROM media WHERE expires_at < $1 ORDER BY expires_at LIMIT $2',
    [now, atMost],
  )
  return rows.map(({ media_nid }) => media_nid)
}

/** Media of other servers that nobody used since a time. Quarantined media stay, so that they stay hidden. */
export async function unseenRemoteMedia(
  reader: Reader,
  ownServer: string,
  before: number,
  atMost: number,
): Promise<number[]> {
  const rows = await reader.query<{ media_nid: number }>(
    `SELECT m.media_nid FROM media m LEFT JOIN media_content c USING (digest)
     WHERE m.seen_at < $2 AND m.server_name <> $1 AND c.quarantined_by IS NULL ORDER BY m.seen_at LIMIT $3`,
    [ownServer, before, atMost],
  )
  return rows.map(({ media_nid }) => media_nid)
}

/** Releases content that has been unused since a time and that nothing refers to: it counts as not stored from now on. Gives that content. */
export async function releaseContent(tx: Tx, before: number, atMost: number): Promise<Buffer[]> {
  const rows = await tx.query<{ digest: Buffer; is_free: boolean }>(
    `WITH looked_at AS (
       SELECT digest, quarantined_by IS NULL
         AND NOT EXISTS (SELECT FROM media m WHERE m.digest = c.digest)
         AND NOT EXISTS (SELECT FROM media_thumbnail t WHERE t.digest = c.digest) AS is_free
       FROM media_content c WHERE is_loose AND wanted_at < $1 ORDER BY wanted_at LIMIT $2 FOR UPDATE)
     UPDATE media_content c SET is_loose = l.is_free, is_stored = c.is_stored AND NOT l.is_free
     FROM looked_at l WHERE c.digest = l.digest RETURNING c.digest, l.is_free`,
    [before, atMost],
  )
  return rows.filter(({ is_free }) => is_free).map(({ digest }) => digest)
}

/** Whether released content is still unused. Locks it: nobody can use it until the transaction ends. */
export async function holdReleased(tx: Tx, digest: Buffer, before: number): Promise<boolean> {
  const rows = await tx.query(
    'SELECT FROM media_content WHERE digest = $1 AND is_loose AND NOT is_stored AND wanted_at < $2 FOR UPDATE',
    [digest, before],
  )
  return rows.length === 1
}

/** Removes the rows of content and its thumbnails; the content of the thumbnails is checked later. */
export async function forgetContent(tx: Tx, digest: Buffer): Promise<void> {
  await tx.query(
    `UPDATE media_content SET is_loose = true
     WHERE digest IN (SELECT digest FROM media_thumbnail WHERE source = $1) AND digest <> $1`,
    [digest],
  )
  await tx.query('DELETE FROM media_content WHERE digest = $1', [digest])
}

export async function forgetPreviews(tx: Tx, now: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM url_preview WHERE url_digest = ANY(ARRAY(
       SELECT url_digest FROM url_preview WHERE expires_at < $1 LIMIT $2)) RETURNING 1 AS one`,
    [now, atMost],
  )
  return rows.length
}

/** Media of our users that nobody used since a time, in order of their numbers. Protected and quarantined media are left out. */
export function unseenLocalMedia(
  reader: Reader,
  ownServer: string,
  before: number,
  after: number,
  atMost: number,
): Promise<{ media_nid: number; media_id: string }[]> {
  return reader.query(
    `SELECT m.media_nid, m.media_id FROM media m JOIN media_content c USING (digest)
     WHERE m.server_name = $1 AND m.seen_at < $2 AND m.media_nid > $3 AND NOT m.is_protected AND c.quarantined_by IS NULL
     ORDER BY m.media_nid LIMIT $4`,
    [ownServer, before, after, atMost],
  )
}

/** Media of accounts that ended before a time. Protected and quarantined media are left out. */
export async function mediaOfEnded(reader: Reader, before: number, atMost: number): Promise<number[]> {
  const rows = await reader.query<{ media_nid: number }>(
    `SELECT m.media_nid FROM account a JOIN media m USING (user_nid) JOIN media_content c USING (digest)
     WHERE a.deactivated_at < $1 AND NOT m.is_protected AND c.quarantined_by IS NULL LIMIT $2`,
    [before, atMost],
  )
  return rows.map(({ media_nid }) => media_nid)
}

/** The avatar URIs of this server's users, and all that rooms ever had, unparsed. */
export async function avatarUris(reader: Reader): Promise<string[]> {
  const rows = await reader.query<{ uri: string | null }>(
    `SELECT ${decodable('value')} #>> '{}' AS uri FROM profile_field WHERE name = 'avatar_url'
     UNION SELECT ${decodable('e.json')} #>> '{content,url}' FROM state_key k JOIN event e ON e.room_nid = k.room_nid AND e.key_id = k.key_id
       WHERE k.type = 'm.room.avatar'`,
  )
  return rows.flatMap(({ uri }) => uri ?? [])
}
