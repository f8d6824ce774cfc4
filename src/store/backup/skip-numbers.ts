import type { Tx } from '../db/db.ts'

// Tables: none; all sequences

/** How far sequences jump: more than was given out between a backup and its restore, and little for those that have four bytes. */
export const SEQUENCE_GAP = 1_000_000

/** Lets sequences jump over the numbers that were given out after the moment to which a database went back. */
export async function skipNumbers(tx: Tx): Promise<void> {
  await tx.query(
    `SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, coalesce(last_value, 0) + ${SEQUENCE_GAP})
     FROM pg_sequences WHERE schemaname = current_schema()`,
  )
}
