import type { Reader } from '../db/db.ts'

// Tables: none; reads the statistics of Postgres

/** How many transactions anybody has ended in this database. Postgres counts those of a session within a second, or ten if it then rests. */
export async function countTransactions(reader: Reader): Promise<number> {
  const [row] = await reader.query<{ ended: number }>(
    'SELECT (xact_commit + xact_rollback)::bigint AS ended FROM pg_stat_database WHERE datname = current_database()',
  )
  return row!.ended
}
