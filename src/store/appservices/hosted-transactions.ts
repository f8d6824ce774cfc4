import type { Reader, Tx } from '../db/db.ts'

// Table: hosted_transaction

/** A processed transaction; its digest is null if it was not recorded. */
export async function findTaken(
  reader: Reader,
  appserviceId: string,
  txnId: string,
): Promise<{ readonly digest: Buffer | null } | undefined> {
  const [row] = await reader.query<{ digest: Buffer | null }>(
    'SELECT digest FROM hosted_transaction WHERE appservice_id = $1 AND txn_id = $2',
    [appserviceId, txnId],
  )
  return row
}

export async function setTaken(
  tx: Tx,
  { appserviceId, txnId, digest }: { readonly appserviceId: string; readonly txnId: string; readonly digest: Buffer },
  now: number,
): Promise<void> {
  await tx.query(
    `INSERT INTO hosted_transaction (appservice_id, txn_id, digest, taken_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT DO NOTHING`,
    [appserviceId, txnId, digest, now],
  )
}

/** Removes some that were processed before a time, and gives how many. */
export async function forgetTaken(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM hosted_transaction WHERE ctid = ANY(ARRAY(SELECT ctid FROM hosted_transaction WHERE taken_at < $1 LIMIT $2))
     RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}
