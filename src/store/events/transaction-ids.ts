import type { Reader, Tx } from '../db/db.ts'
import type { TxnWrite } from './event-writes.ts'

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

/** Whether a request with this transaction id has written an event, with this login of its device or an earlier one. */
export async function wasTransactionUsed(
  reader: Reader,
  { tokenNid, earlierTokens, hash }: Pick<TxnWrite, 'tokenNid' | 'earlierTokens' | 'hash'>,
): Promise<boolean> {
  const rows = await reader.query(
    'SELECT 1 AS one FROM client_txn WHERE token_nid = ANY ($1::bigint[]) AND txn_hash = $2 LIMIT 1',
    [[tokenNid, ...earlierTokens], hash],
  )
  return rows.length > 0
}
