import type { Tx } from '../db/db.ts'

// Table: client_txn

/** Forgets some transaction ids that were last used before a time. Gives how many. */
export async function forgetTransactionIds(tx: Tx, before: number, limit: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM client_txn WHERE ctid = ANY(ARRAY(SELECT ctid FROM client_txn WHERE created_ts < $1 LIMIT $2))
     RETURNING token_nid`,
    [before, limit],
  )
  return rows.length
}
