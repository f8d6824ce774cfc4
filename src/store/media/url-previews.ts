import type { JsonObject } from '../../core/json.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: url_preview

export async function findPreview(reader: Reader, urlDigest: Buffer, now: number): Promise<JsonObject | undefined> {
  const [row] = await reader.query<{ body: string }>(
    'SELECT body FROM url_preview WHERE url_digest = $1 AND expires_at > $2',
    [urlDigest, now],
  )
  return row && (JSON.parse(row.body) as JsonObject)
}

export async function putPreview(tx: Tx, urlDigest: Buffer, body: JsonObject, expiresAt: number): Promise<void> {
  await tx.query(
    `INSERT INTO url_preview (url_digest, body, expires_at) VALUES ($1, $2, $3)
     ON CONFLICT (url_digest) DO UPDATE SET body = excluded.body, expires_at = excluded.expires_at`,
    [urlDigest, JSON.stringify(body), expiresAt],
  )
}
