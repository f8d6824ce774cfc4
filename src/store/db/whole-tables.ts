import type { Database, Reader } from './db.ts'

/**
 * A reader for questions about whole tables, such as operators ask. Other queries look rows up by key and never scan a table, which would
 * take these several times as long. It sorts and joins in up to 32 MB of the database's memory, for as long as the question takes.
 */
export function wholeTables(db: Pick<Database, 'tx'>): Reader {
  return {
    query: (text, values) =>
      db.tx(async (tx) => {
        await tx.query(`SELECT set_config('enable_seqscan', 'on', true), set_config('work_mem', '32MB', true)`)
        return tx.query(text, values)
      }),
  }
}
