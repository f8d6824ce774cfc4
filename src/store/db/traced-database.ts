import type { Reader, Values } from './connection.ts'
import type { Database, Tx } from './db.ts'

/** Runs work as a span. */
export type TraceStatement = <T>(
  name: string,
  attributes: Readonly<Record<string, string>>,
  work: () => Promise<T>,
) => Promise<T>

const OPERATION = /^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|SET)\b/i

/** A database whose statements and transactions are spans, by their kind. Neither texts nor values are in them. */
export function traceDatabase(db: Database, trace: TraceStatement): Database {
  const run = <T>(connection: string, text: string, work: () => Promise<T>): Promise<T> => {
    const operation = OPERATION.exec(text)?.[1]?.toUpperCase() ?? 'OTHER'
    const attributes = {
      'db.system.name': 'postgresql',
      'db.operation.name': operation,
      'hearth.connection': connection,
    }
    return trace(`${operation} (${connection})`, attributes, work)
  }
  const reader = (connection: string, of: Reader): Reader => ({
    query: <Row extends object>(text: string, values?: Values) =>
      run(connection, text, () => of.query<Row>(text, values)),
  })
  const { query } = reader('read', db)
  return {
    query,
    bulk: reader('bulk', db.bulk),
    scan: <Row extends object>(text: string, values?: Values) => run('scan', text, () => db.scan<Row>(text, values)),
    tx: (work) =>
      trace('transaction', { 'db.system.name': 'postgresql' }, () =>
        db.tx((tx) => work(reader('transaction', tx) as Tx)),
      ),
    dedicated(prepare) {
      const connection = db.dedicated(prepare)
      return { query: reader('writer', connection).query, close: () => connection.close() }
    },
    asyncCommits() {
      const connection = db.asyncCommits()
      const { query: write } = reader('writer without sync', connection)
      return { query: write, close: () => connection.close() } as Tx & { close(): Promise<void> }
    },
    get replicas() {
      return db.replicas
    },
    era: db.era,
    waiting: db.waiting,
    pool: db.pool,
    close: db.close,
  }
}
