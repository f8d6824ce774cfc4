import type { UserId } from '../../core/ids.ts'
import type { Reader, Tx } from '../db/db.ts'

// Table: identity_accepted_url

/** Which of these URLs a user has accepted. */
export async function findAcceptedUrls(reader: Reader, userId: UserId, urls: readonly string[]): Promise<string[]> {
  const rows = await reader.query<{ url: string }>(
    'SELECT url FROM identity_accepted_url WHERE user_id = $1 AND url = ANY($2::text[])',
    [userId, urls],
  )
  return rows.map(({ url }) => url)
}

/** How many URLs other than these a user has accepted. */
export async function countOtherAcceptedUrls(reader: Reader, userId: UserId, urls: readonly string[]): Promise<number> {
  const [row] = await reader.query<{ count: number }>(
    'SELECT count(*) AS count FROM identity_accepted_url WHERE user_id = $1 AND url <> ALL($2::text[])',
    [userId, urls],
  )
  return row?.count ?? 0
}

export async function insertAcceptedUrls(
  tx: Tx,
  userId: UserId,
  urls: readonly string[],
  acceptedAt: number,
): Promise<void> {
  await tx.query(
    `INSERT INTO identity_accepted_url (user_id, url, accepted_at) SELECT $1, unnest($2::text[]), $3
     ON CONFLICT DO NOTHING`,
    [userId, urls, acceptedAt],
  )
}

export async function listAcceptedUrls(
  reader: Reader,
  userId: UserId,
): Promise<{ readonly url: string; readonly accepted_at: number }[]> {
  return reader.query(
    'SELECT url, accepted_at FROM identity_accepted_url WHERE user_id = $1 ORDER BY accepted_at, url',
    [userId],
  )
}
