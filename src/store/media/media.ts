import type { Database, Reader, Tx } from '../db/db.ts'

// Tables: media, media_content, media_usage

/** A file, or a name that is reserved for an upload. */
export interface MediaRow {
  readonly media_nid: number
  readonly server_name: string
  readonly media_id: string
  readonly user_nid: number | null
  /** Null until it is uploaded, like `bytes`. */
  readonly digest: Buffer | null
  readonly bytes: number | null
  readonly is_stored: boolean | null
  readonly content_type: string | null
  readonly file_name: string | null
  readonly created_at: number
  readonly seen_at: number
  readonly expires_at: number | null
  readonly is_open: boolean
  readonly is_protected: boolean
  readonly quarantined_by: string | null
}

/** The properties of an uploaded file. */
export type NewMedia = Pick<
  MediaRow,
  'server_name' | 'media_id' | 'user_nid' | 'content_type' | 'file_name' | 'expires_at' | 'is_open'
> & { readonly digest: Buffer }

export const MEDIA_COLUMNS =
  'm.media_nid, m.server_name, m.media_id, m.user_nid, m.digest, c.bytes, c.is_stored, m.content_type, m.file_name, m.created_at, m.seen_at, m.expires_at, m.is_open, m.is_protected, c.quarantined_by'

export async function findMedia(reader: Reader, server: string, mediaId: string): Promise<MediaRow | undefined> {
  const [row] = await reader.query<MediaRow>(
    `SELECT ${MEDIA_COLUMNS} FROM media m LEFT JOIN media_content c USING (digest)
     WHERE m.server_name = $1 AND m.media_id = $2`,
    [server, mediaId],
  )
  return row
}

/** Announces a reference to content. Gives whether the store has the content. */
export async function wantContent(tx: Tx, digest: Buffer, bytes: number, now: number): Promise<boolean> {
  const [row] = await tx.query<{ is_stored: boolean }>(
    `INSERT INTO media_content AS c (digest, bytes, is_stored, is_loose, wanted_at) VALUES ($1, $2, false, true, $3)
     ON CONFLICT (digest) DO UPDATE SET wanted_at = greatest(c.wanted_at, excluded.wanted_at)
     RETURNING is_stored`,
    [digest, bytes, now],
  )
  return row?.is_stored ?? false
}

/** Records that the store has the content and something refers to it. False if the sweeper has removed it meanwhile. */
export async function bindContent(tx: Tx, digest: Buffer): Promise<boolean> {
  const rows = await tx.query(
    'UPDATE media_content SET is_stored = true, is_loose = false WHERE digest = $1 RETURNING 1 AS one',
    [digest],
  )
  return rows.length === 1
}

/** False when there is media of this name. */
export async function insertMedia(tx: Tx, media: NewMedia, now: number): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO media (server_name, media_id, user_nid, digest, content_type, file_name, created_at, seen_at, expires_at, is_open)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9) ON CONFLICT (server_name, media_id) DO NOTHING RETURNING 1 AS one`,
    [
      ...[media.server_name, media.media_id, media.user_nid, media.digest, media.content_type, media.file_name],
      ...[now, media.expires_at, media.is_open],
    ],
  )
  return rows.length === 1
}

/** Reserves a name for a later upload, unless the user has so many already. */
export async function reserveMedia(
  tx: Tx,
  media: Pick<MediaRow, 'server_name' | 'media_id'> & { readonly user_nid: number; readonly expires_at: number },
  limits: { readonly now: number; readonly atMost: number },
): Promise<boolean> {
  await lockUploader(tx, media.user_nid)
  const rows = await tx.query(
    `INSERT INTO media (server_name, media_id, user_nid, created_at, seen_at, expires_at, is_open)
     SELECT $1, $2, $3, $4, $4, $5, false
     WHERE (SELECT count(*) FROM media WHERE user_nid = $3 AND digest IS NULL AND expires_at > $4) < $6
     RETURNING 1 AS one`,
    [media.server_name, media.media_id, media.user_nid, limits.now, media.expires_at, limits.atMost],
  )
  return rows.length === 1
}

/** Gives a reserved name its content. False if it has content already, or is gone. */
export async function completeMedia(tx: Tx, mediaNid: number, media: NewMedia, now: number): Promise<boolean> {
  const rows = await tx.query(
    `UPDATE media SET digest = $2, content_type = $3, file_name = $4, is_open = $5, created_at = $6, seen_at = $6, expires_at = NULL
     WHERE media_nid = $1 AND digest IS NULL RETURNING 1 AS one`,
    [mediaNid, media.digest, media.content_type, media.file_name, media.is_open, now],
  )
  return rows.length === 1
}

/** Uploads of one user are counted one after another. */
export async function lockUploader(tx: Tx, userNid: number): Promise<void> {
  await tx.query('SELECT FROM matrix_user WHERE user_nid = $1 FOR NO KEY UPDATE', [userNid])
}

export async function bytesOfUser(reader: Reader, userNid: number): Promise<number> {
  const [row] = await reader.query<{ bytes: number }>('SELECT bytes FROM media_usage WHERE user_nid = $1', [userNid])
  return row?.bytes ?? 0
}

/** All content that the store has. */
export function listStored(db: Pick<Database, 'scan'>): Promise<{ digest: Buffer; bytes: number }[]> {
  return db.scan('SELECT digest, bytes FROM media_content WHERE is_stored ORDER BY digest')
}

export async function noteSeen(tx: Tx, mediaNid: number, now: number): Promise<void> {
  await tx.query('UPDATE media SET seen_at = $2 WHERE media_nid = $1', [mediaNid, now])
}

/** Records that the store has lost content, so that a new upload stores it again. */
export async function noteLost(tx: Tx, digest: Buffer): Promise<void> {
  await tx.query('UPDATE media_content SET is_stored = false WHERE digest = $1', [digest])
}

/** Stores a file of another server; it replaces a row whose content was lost. */
export async function putRemoteMedia(tx: Tx, media: NewMedia, now: number): Promise<void> {
  await tx.query(
    `INSERT INTO media (server_name, media_id, digest, content_type, file_name, created_at, seen_at, is_open)
     VALUES ($1, $2, $3, $4, $5, $6, $6, $7)
     ON CONFLICT (server_name, media_id) DO UPDATE
       SET digest = excluded.digest, content_type = excluded.content_type, file_name = excluded.file_name`,
    [...[media.server_name, media.media_id, media.digest, media.content_type, media.file_name, now], media.is_open],
  )
}
