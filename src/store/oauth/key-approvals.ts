import type { Tx } from '../db/db.ts'

// Table: cross_signing_approval

export async function putKeyApproval(tx: Tx, userNid: number, expiresAt: number): Promise<void> {
  await tx.query(
    `INSERT INTO cross_signing_approval (user_nid, expires_at) VALUES ($1, $2)
     ON CONFLICT (user_nid) DO UPDATE SET expires_at = excluded.expires_at`,
    [userNid, expiresAt],
  )
}

/** Uses up an approval; false if there is none that is still good. */
export async function takeKeyApproval(tx: Tx, userNid: number, now: number): Promise<boolean> {
  const rows = await tx.query<{ expires_at: number }>(
    'DELETE FROM cross_signing_approval WHERE user_nid = $1 RETURNING expires_at',
    [userNid],
  )
  return rows.some(({ expires_at }) => expires_at > now)
}

/** Gives how many were removed. */
export async function forgetKeyApprovals(tx: Tx, now: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM cross_signing_approval WHERE user_nid IN (
       SELECT user_nid FROM cross_signing_approval WHERE expires_at <= $1 LIMIT $2) RETURNING 1 AS one`,
    [now, atMost],
  )
  return rows.length
}
