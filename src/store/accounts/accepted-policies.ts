import type { Tx } from '../db/db.ts'

// Table: accepted_policy

export async function insertAcceptedPolicies(
  tx: Tx,
  userNid: number,
  urls: readonly string[],
  acceptedAt: number,
): Promise<void> {
  await tx.query(
    `INSERT INTO accepted_policy (user_nid, url, accepted_at) SELECT $1, unnest($2::text[]), $3 ON CONFLICT DO NOTHING`,
    [userNid, urls, acceptedAt],
  )
}
