import type { Reader, Tx } from '../db/db.ts'

// Table: federation_txn

/** The answer to an earlier transaction. */
export async function findTransaction(reader: Reader, hash: Buffer): Promise<string | undefined> {
  const [row] = await reader.query<{ answer: string }>('SELECT answer FROM federation_txn WHERE txn_hash = $1', [hash])
  return row?.answer
}

export async function insertTransaction(
  tx: Tx,
  { hash, answer, receivedAt }: { readonly hash: Buffer; readonly answer: string; readonly receivedAt: number },
): Promise<void> {
  await tx.query(
    'INSERT INTO federation_txn (txn_hash, answer, received_at) VALUES ($1, $2, $3) ON CONFLICT (txn_hash) DO NOTHING',
    [hash, answer, receivedAt],
  )
}

/** Removes answers from before a moment, and gives how many. */
export async function forgetTransactions(tx: Tx, before: number, atMost: number): Promise<number> {
  const rows = await tx.query(
    `DELETE FROM federation_txn WHERE txn_hash IN (SELECT txn_hash FROM federation_txn WHERE received_at < $1 LIMIT $2)
     RETURNING 1 AS one`,
    [before, atMost],
  )
  return rows.length
}
