import type { Reader, Tx } from '../db/db.ts'

// Tables: media_thumbnail, media_content

export interface ThumbnailRow {
  readonly digest: Buffer
  readonly bytes: number
  readonly content_type: string
}

/** A stored thumbnail of the content `source`. */
export async function findThumbnail(
  reader: Reader,
  source: Buffer,
  variant: string,
): Promise<ThumbnailRow | undefined> {
  const [row] = await reader.query<ThumbnailRow>(
    `SELECT t.digest, c.bytes, t.content_type FROM media_thumbnail t JOIN media_content c ON c.digest = t.digest
     WHERE t.source = $1 AND t.variant = $2 AND c.is_stored`,
    [source, variant],
  )
  return row
}

export async function insertThumbnail(
  tx: Tx,
  thumbnail: {
    readonly source: Buffer
    readonly variant: string
    readonly digest: Buffer
    readonly contentType: string
  },
): Promise<void> {
  await tx.query(
    `INSERT INTO media_thumbnail (source, variant, digest, content_type)
     SELECT $1, $2, $3, $4 WHERE EXISTS (SELECT FROM media_content WHERE digest = $1)
     ON CONFLICT (source, variant) DO UPDATE SET digest = excluded.digest, content_type = excluded.content_type`,
    [thumbnail.source, thumbnail.variant, thumbnail.digest, thumbnail.contentType],
  )
}
