import pg from 'pg'
import {
  command,
  PipelinedConnection,
  PipelinedConnections,
  prepared,
  type Reader,
  translate,
  unavailable,
  type Values,
} from './connection.ts'
import { openReplicas, type Replicas, type ReplicasOptions } from './replicas.ts'
import { WIRE_TYPES } from './wire-types.ts'

export { DiskFull, type Reader, type Values } from './connection.ts'

declare const transactional: unique symbol

/** A reader inside a transaction. Functions that write take one, so a write outside a transaction does not compile. */
export interface Tx extends Reader {
  readonly [transactional]: true
}

export interface Database extends Reader {
  /** Runs `work` in one transaction: commits when it resolves, rolls back when it rejects. */
  tx<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /** For large results, so that small reads do not wait behind them. Opened on first use. */
  readonly bulk: Reader
  /** A pool connection for long scans, so that they do not hold up the pipeline. */
  scan<Row extends object = Record<string, unknown>>(text: string, values?: Values): Promise<Row[]>
  /** A pipelined connection of its own, for a writer that must not queue behind reads. */
  dedicated(prepare?: (client: pg.Client) => Promise<void>): Reader & { close(): Promise<void> }
  /**
   * A connection of its own for writes of one statement, each of which is a transaction. They do not wait for the disk: after a crash of the
   * machine, the last ones may not have happened, unless a transaction of `tx` was committed after them.
   */
  asyncCommits(): Tx & { close(): Promise<void> }
  /** Where what decides nothing is read, if there are replicas. Their connections are opened on first use. */
  readonly replicas: Replicas | undefined
  /**
   * Another number after a connection for reads was lost. What is read on one connection is never taken back; on the next one, another
   * server may answer, which lacks the last writes.
   */
  era(): number
  /** How many transactions and scans wait for a pool connection. */
  waiting(): number
  pool(): PoolUse
  close(): Promise<void>
}

/** Hears how long work took, in seconds. */
export interface DatabaseObserver {
  /** A read is answered or has failed: on the connection of small reads, or on one of those for large results. */
  read(connection: 'read' | 'bulk', seconds: number): void
  /** A transaction has got its connection. */
  waited(seconds: number): void
  /** A transaction has ended. */
  transacted(seconds: number): void
}

/** The connections for transactions and scans. */
export interface PoolUse {
  readonly open: number
  readonly idle: number
}

export interface DatabaseOptions {
  /** Anything `pg` accepts: a connection string or a socket directory. */
  readonly connection: pg.ClientConfig
  /** Connections for transactions and scans, beside the pipelined ones. */
  readonly poolSize: number
  /** A query that runs longer than this is cancelled, so that it cannot block its pipeline. Milliseconds. */
  readonly statementTimeoutMs?: number
  readonly observer?: DatabaseObserver | undefined
  /** What Postgres calls these connections; `hearth` by default. */
  readonly name?: string | undefined
  /** Asked before each transaction and before its commit. A process that may not write gets a 503 instead. */
  readonly mayWrite?: (() => boolean) | undefined
  /** Nothing can be written through these connections: neither this process nor Postgres lets it. */
  readonly readsOnly?: true | undefined
  /** Streaming replicas, by their connection strings. */
  readonly replicas?: (Pick<ReplicasOptions, 'heard'> & { readonly urls: readonly string[] }) | undefined
}

const BULK_CONNECTIONS = 2

const READS_ONLY = ' -c default_transaction_read_only=on'
const never = (): boolean => false

export function openDatabase(options: DatabaseOptions): Database {
  const { observer, readsOnly } = options
  const mayWrite = readsOnly ? never : options.mayWrite
  const settings: pg.ClientConfig = {
    application_name: options.name ?? 'hearth',
    // Queries are small and their plans do not depend on the parameters: planning takes longer than running. They look rows up by key.
    // Without enable_seqscan=off, a plan made while a table was small would scan the table until it is analyzed.
    options: `-c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off${readsOnly ? READS_ONLY : ''}`,
    statement_timeout: options.statementTimeoutMs ?? 60_000,
    connectionTimeoutMillis: 5_000,
  }
  const config: pg.ClientConfig = { ...options.connection, ...settings }
  let era = 0
  const lost = (): void => {
    era++
    if (!readsOnly) return
    // What is read on several connections must be of one server.
    reads.renew()
    bulk.renew()
  }
  const heard = (kind: 'read' | 'bulk') => observer && ((seconds: number) => observer.read(kind, seconds))
  const reads: PipelinedConnection = new PipelinedConnection(config, { answered: heard('read'), lost })
  const bulk = new PipelinedConnections(config, { count: BULK_CONNECTIONS, answered: heard('bulk'), lost })
  const owned: { close(): Promise<void> }[] = [reads, bulk]
  const pool = new pg.Pool({ ...config, pipeline: true, types: WIRE_TYPES, max: options.poolSize } as pg.PoolConfig)
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  pool.on('error', () => {})
  let replicas: Replicas | undefined

  return {
    query: (text, values) => reads.query(text, values),
    bulk,
    tx: (work) => transaction(pool, work, { observer, mayWrite }),
    async scan<Row extends object>(text: string, values: Values = []): Promise<Row[]> {
      try {
        return (await pool.query<Row & pg.QueryResultRow>(prepared(text, values, true))).rows
      } catch (error) {
        throw translate(error)
      }
    },
    dedicated(prepare) {
      const connection = new PipelinedConnection(config, { prepare, isPatient: true })
      owned.push(connection)
      return connection
    },
    asyncCommits() {
      const prepare = (client: pg.Client) => client.query('SET synchronous_commit = off').then(() => {})
      const connection = new PipelinedConnection(config, { prepare })
      owned.push(connection)
      const query: Reader['query'] = (text, values) =>
        mayWrite === undefined || mayWrite() ? connection.query(text, values) : Promise.reject(unavailable())
      return { query, close: () => connection.close() } as Tx & { close(): Promise<void> }
    },
    get replicas() {
      if (replicas === undefined && options.replicas !== undefined) {
        replicas = replicasOf(options.replicas, settings, reads)
        if (replicas !== undefined) owned.push(replicas)
      }
      return replicas
    },
    era: () => era,
    waiting: () => pool.waitingCount,
    pool: () => ({ open: pool.totalCount, idle: pool.idleCount }),
    async close() {
      await Promise.all(owned.map((connection) => connection.close()))
      await pool.end()
    },
  }
}

/** Undefined without any: nobody asks then how far they are. */
function replicasOf(
  { urls, heard }: NonNullable<DatabaseOptions['replicas']>,
  settings: pg.ClientConfig,
  primary: Reader,
): Replicas | undefined {
  const connections = urls.map((connectionString) => ({ connectionString, ...settings }))
  return connections.length === 0 ? undefined : openReplicas({ connections, primary, heard })
}

async function transaction<T>(
  pool: pg.Pool,
  work: (tx: Tx) => Promise<T>,
  { observer, mayWrite }: Pick<DatabaseOptions, 'observer' | 'mayWrite'>,
): Promise<T> {
  if (mayWrite !== undefined && !mayWrite()) throw unavailable()
  const asked = performance.now()
  const client = await pool.connect().catch((error) => {
    throw translate(error)
  })
  const begun = performance.now()
  observer?.waited((begun - asked) / 1000)
  const ignoreLoss = (): void => {}
  client.on('error', ignoreLoss)
  let over = false
  const tx = {
    query: async <Row extends object>(text: string, values: Values = []) => {
      // A late query of failed work must not write through a connection that others use by now.
      if (over) throw new Error('this transaction has ended')
      return (await client.query<Row & pg.QueryResultRow>(prepared(text, values))).rows
    },
  } as Tx
  let lost: Error | undefined
  try {
    // Not awaited: BEGIN travels with the first statement, which fails if it does.
    const beginning = client.query(command('BEGIN'))
    beginning.catch(() => {})
    const result = await work(tx)
    over = true
    await beginning
    if (mayWrite !== undefined && !mayWrite()) throw unavailable()
    await client.query(command('COMMIT'))
    return result
  } catch (error) {
    over = true
    await client.query(command('ROLLBACK')).catch((failure: Error) => {
      lost = failure
    })
    throw translate(error)
  } finally {
    client.off('error', ignoreLoss)
    client.release(lost)
    observer?.transacted((performance.now() - begun) / 1000)
  }
}
