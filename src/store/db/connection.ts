import pg from 'pg'
import { ProtocolError } from '../../core/errors.ts'
import { WIRE_TYPES } from './wire-types.ts'

export type Values = readonly unknown[]

/** What runs a query: one pipelined connection, a pool, or a transaction. Rows come as objects; int8 as number, bytea as Buffer. */
export interface Reader {
  query<Row extends object = Record<string, unknown>>(text: string, values?: Values): Promise<Row[]>
}

const statementNames = new Map<string, string>()

/** A prepared-statement name per distinct SQL text. Texts are constants of the source, so this does not grow. */
function statementName(text: string): string {
  let name = statementNames.get(text)
  if (name === undefined) {
    name = `s${statementNames.size}`
    statementNames.set(text, name)
  }
  return name
}

/** After this time without an answer the database counts as away. Milliseconds. */
const ANSWER_TIMEOUT_MS = 8_000

/** Lists of numbers as Postgres writes them: the driver would quote each number. */
function asParameter(value: unknown): unknown {
  return Array.isArray(value) && value.every(Number.isFinite) ? `{${value.join(',')}}` : value
}

/** A query for the driver. A `patient` one has no timeout of ours: scans may take as long as the server allows. */
export function prepared(text: string, values: Values, patient = false): TimedQuery {
  const query = { name: statementName(text), text, values: values.map(asParameter) }
  return patient ? query : { ...query, query_timeout: ANSWER_TIMEOUT_MS }
}

/** A query that is sent behind another one. It gets twice the time, since it only waits at first. */
function patient(text: string, values: Values): TimedQuery {
  return { ...prepared(text, values), query_timeout: 2 * ANSWER_TIMEOUT_MS }
}

/** BEGIN, COMMIT and the like. */
export function command(text: string): TimedQuery {
  return { text, query_timeout: ANSWER_TIMEOUT_MS }
}

type TimedQuery = pg.QueryConfig & { readonly query_timeout?: number }

/** Whether an error means that the server is away, rather than that the query was wrong. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = (error as { code?: unknown }).code
  if (typeof code === 'string') return /^(?:08|57P0|ECONN|ENOENT|EPIPE|ETIMEDOUT|EACCES|53300)/.test(code)
  return /Connection terminated|connection error|Query read timeout|not queryable|timeout expired|timeout exceeded|Client was closed/i.test(
    error.message,
  )
}

/** The error for callers while the database is away: nothing was lost, and they may repeat the request. */
export function unavailable(): ProtocolError {
  return new ProtocolError(
    'M_UNKNOWN',
    'The database is not answering just now. Send the request again in a few seconds.',
    {
      status: 503,
      extra: { retry_after_ms: 2000 },
    },
  )
}

/** What Postgres answers when it cannot write because there is no room (`disk_full`). The statement had no effect. */
const DISK_FULL = '53100'

/**
 * The error for callers while the database has no room. They may repeat the request, as during an outage: so other servers keep their
 * events and send them again.
 */
export class DiskFull extends ProtocolError {
  constructor(cause: unknown) {
    super(
      'M_UNKNOWN',
      'The disk of the database is full. Its operator has to make room: send the request again later.',
      {
        status: 503,
        extra: { retry_after_ms: 60_000 },
      },
    )
    this.cause = cause
  }
}

/** Turns "the server is away" and "its disk is full" into the errors that callers see; leaves others as they are. */
export function translate(error: unknown): unknown {
  if (error instanceof Error && (error as { code?: unknown }).code === DISK_FULL) return new DiskFull(error)
  return isUnavailable(error) ? unavailable() : error
}

/**
 * Whether a query failed, before it did anything, because its statement is not there, or is there already (`invalid_sql_statement_name`,
 * `duplicate_prepared_statement`). So fail those that were sent behind one that could not be parsed: the driver counts on its statement.
 */
function hasOtherStatement(error: unknown): boolean {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined
  return code === '26000' || code === '42P05'
}

export interface PipelinedOptions {
  /** Runs on each new connection before any query, for session settings and locks. */
  readonly prepare?: ((client: pg.Client) => Promise<void>) | undefined
  /** Hears after how many seconds each query was answered or has failed. */
  readonly answered?: ((seconds: number) => void) | undefined
  /** Called when a connection was lost that had been open. */
  readonly lost?: (() => void) | undefined
  /** Whether a query that is sent behind another one gets more time. */
  readonly isPatient?: true | undefined
}

/**
 * One pipelined connection that heals itself: a query on a lost connection opens a new one.
 *
 * Queries are sent without waiting for earlier answers, each its own transaction, answered in order.
 */
export class PipelinedConnection implements Reader {
  readonly #config: pg.ClientConfig
  readonly #options: PipelinedOptions
  #client: pg.Client | undefined
  #connecting: Promise<pg.Client> | undefined
  #closed = false
  /** How many queries are not answered. */
  #waiting = 0

  constructor(config: pg.ClientConfig, options: PipelinedOptions = {}) {
    this.#config = { ...config, pipeline: true, types: WIRE_TYPES, keepAlive: true }
    this.#options = options
  }

  async query<Row extends object>(text: string, values: Values = []): Promise<Row[]> {
    const asked = performance.now()
    const query = this.#options.isPatient && this.#waiting > 0 ? patient(text, values) : prepared(text, values)
    this.#waiting += 1
    try {
      const client = this.#client ?? (await this.#connect())
      return (await client.query<Row & pg.QueryResultRow>(query)).rows
    } catch (error) {
      if (hasOtherStatement(error)) return await this.#queryUnprepared<Row>(text, values)
      throw translate(error)
    } finally {
      this.#waiting -= 1
      this.#options.answered?.((performance.now() - asked) / 1000)
    }
  }

  async #queryUnprepared<Row extends object>(text: string, values: Values): Promise<Row[]> {
    try {
      const { name: _name, ...query } = prepared(text, values)
      const client = this.#client ?? (await this.#connect())
      return (await client.query<Row & pg.QueryResultRow>(query)).rows
    } catch (error) {
      throw translate(error)
    }
  }

  /** Whether it is open, or is being opened. */
  get isOpen(): boolean {
    return this.#client !== undefined || this.#connecting !== undefined
  }

  #connect(): Promise<pg.Client> {
    if (this.#closed) return Promise.reject(new Error('Client was closed'))
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = undefined
    })
    return this.#connecting
  }

  async #open(): Promise<pg.Client> {
    const client = new pg.Client(this.#config)
    const drop = (): void => {
      if (this.#client !== client) return
      this.#client = undefined
      this.#options.lost?.()
    }
    client.on('error', drop)
    client.on('end', drop)
    await client.connect()
    try {
      await this.#options.prepare?.(client)
      // It was closed while it was being opened.
      if (this.#closed) throw new Error('Client was closed')
    } catch (error) {
      await client.end().catch(() => {})
      throw error
    }
    this.#client = client
    return client
  }

  /** Has later queries open a new connection. Those that were sent are still answered on the old one. */
  renew(): void {
    const client = this.#client
    this.#client = undefined
    client?.end().catch(() => {})
  }

  async close(): Promise<void> {
    this.#closed = true
    const client = this.#client
    this.#client = undefined
    await client?.end()
  }
}

/** To open a connection, and to plan anew on it, takes longer than to wait for so many queries. */
const OPENING_COST = 2

interface Counted {
  readonly connection: PipelinedConnection
  waiting: number
}

const costOf = ({ connection, waiting }: Counted): number => (connection.isOpen ? waiting : waiting + OPENING_COST)

/** A few pipelined connections: each query takes the one on which the fewest wait. */
export class PipelinedConnections implements Reader {
  readonly #connections: readonly Counted[]

  constructor(config: pg.ClientConfig, { count, ...options }: PipelinedOptions & { readonly count: number }) {
    this.#connections = Array.from({ length: count }, () => ({
      connection: new PipelinedConnection(config, options),
      waiting: 0,
    }))
  }

  async query<Row extends object>(text: string, values: Values = []): Promise<Row[]> {
    const least = this.#connections.reduce((best, one) => (costOf(one) < costOf(best) ? one : best))
    least.waiting += 1
    try {
      return await least.connection.query<Row>(text, values)
    } finally {
      least.waiting -= 1
    }
  }

  renew(): void {
    for (const { connection } of this.#connections) connection.renew()
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map(({ connection }) => connection.close()))
  }
}
