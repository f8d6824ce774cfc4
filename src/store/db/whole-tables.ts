import type { Database, Reader } from './db.ts'

/**
 * A reader for questions about whole tables, such as operators ask. Other queries look rows up by key and never scan a table, which would
 * take these several times as long. It sorts and joins in up to 32 MB of the database's memory, for as long as the question takes.
 */
export function wholeTables(db: Pick<Database, 'tx' | 'replicas'>): Reader {
  const primary: Reader = {
    query: (text, values) =>
      db.tx(async (tx) => {
        await tx.query(`SELECT set_config('enable_seqscan', 'on', true), set_config('work_mem', '32MB', true)`)
        return tx.query(text, values)
      }),
  }
  return db.replicas?.caughtUp(primary, 'whole') ?? primary
}

/** A reader for long questions that operators ask and that decide nothing. */
export function surveys(db: Pick<Database, 'scan' | 'replicas'>): Reader {
  const primary: Reader = { query: db.scan }
  return db.replicas?.caughtUp(primary) ?? primary
}

/** A reader for searches: what was written in the last seconds may be missing. */
export function searches(db: Reader & Partial<Pick<Database, 'replicas'>>): Reader {
  return db.replicas?.recent(db) ?? db
}
