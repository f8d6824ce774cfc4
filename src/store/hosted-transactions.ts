import type { Reader, Tx } from './db.ts'

// Table: hosted_transaction

export async function isTaken(reader: Reader, appserviceId: string, txnId: string): Promise<boolean> {
  const rows = await reader.query('SELECT 1 AS one FROM hosted_transaction WHERE appservice_id = $1 AND txn_id = $2', [
    appserviceId,
    txnId,
  ])
  return rows.length > 0
}

export async function setTaken(tx: Tx, appserviceId: string, txnId: string, now: number): Promise<void> {
  await tx.query(
    'INSERT INTO hosted_transaction (appservice_id, txn_id, taken_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
    [appserviceId, txnId, now],
  )
}

/** Forgets some that were taken before a time, and gives how many. */
export async function forgetTaken(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM hosted_transaction WHERE ctid = ANY(ARRAY(SELECT ctid FROM hosted_transaction WHERE taken_at < $1 LIMIT $2))
     RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}
