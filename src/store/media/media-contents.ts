import type { Reader, Tx } from '../db/db.ts'

// Tables: media, media_content

export interface ContentRow {
  readonly digest: Buffer
  readonly bytes: number
  readonly is_stored: boolean
}

/** Stored content, and content whose upload or loss is not settled, in order of its hash. */
export function contentsAfter(reader: Reader, after: Buffer, atMost: number): Promise<ContentRow[]> {
  return reader.query<ContentRow>(
    'SELECT digest, bytes, is_stored FROM media_content WHERE digest > $1 ORDER BY digest LIMIT $2',
    [after, atMost],
  )
}

export async function countContents(reader: Reader): Promise<{ readonly count: number; readonly bytes: number }> {
  const [row] = await reader.query<{ count: number; bytes: number }>(
    'SELECT count(*) AS count, coalesce(sum(bytes), 0)::bigint AS bytes FROM media_content',
  )
  return row!
}

/** The files that have a content, such as `mxc://example.org/abc`. */
export async function filesWith(reader: Reader, digest: Buffer, atMost: number): Promise<string[]> {
  const rows = await reader.query<{ mxc: string }>(
    `SELECT 'mxc://' || server_name || '/' || media_id AS mxc FROM media WHERE digest = $1 ORDER BY media_nid LIMIT $2`,
    [digest, atMost],
  )
  return rows.map(({ mxc }) => mxc)
}

export async function isContentKnown(reader: Reader, digest: Buffer): Promise<boolean> {
  return (await reader.query('SELECT 1 AS one FROM media_content WHERE digest = $1', [digest])).length === 1
}

/**
 * Reserves a content that the database does not know. Until the transaction ends, an upload of the same bytes waits before it stores
 * them. False if it is known.
 */
export async function reserveUnknown(
  tx: Tx,
  { digest, bytes }: Pick<ContentRow, 'digest' | 'bytes'>,
): Promise<boolean> {
  const rows = await tx.query(
    `INSERT INTO media_content (digest, bytes, is_stored, is_loose, wanted_at) VALUES ($1, $2, false, true, 0)
     ON CONFLICT (digest) DO NOTHING RETURNING 1 AS one`,
    [digest, bytes],
  )
  return rows.length === 1
}

/** Takes back a reservation. */
export async function releaseUnknown(tx: Tx, digest: Buffer): Promise<void> {
  await tx.query('DELETE FROM media_content WHERE digest = $1', [digest])
}

/** The store has the content after all. */
export async function noteStored(tx: Tx, digest: Buffer): Promise<void> {
  await tx.query('UPDATE media_content SET is_stored = true WHERE digest = $1 AND NOT is_stored', [digest])
}
