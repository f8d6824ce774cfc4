import pg from 'pg'
import { command, PipelinedConnection, prepared, type Reader, type Values } from './connection.ts'
import { type Position, positionOf, ReplicaProgress } from './replica-progress.ts'
import { WIRE_TYPES } from './wire-types.ts'

// Table: node

/**
 * Reads that decide nothing, at streaming replicas of the primary. A read that no replica can answer, because all are away or lag, or that
 * one fails to answer, goes to the primary: nobody but the metrics and the log hear of it.
 */
export interface Replicas {
  /**
   * Reads at a replica that has seen everything that was committed when the read was asked, but for what does not wait for the disk
   * (`asyncCommits`). It waits shortly for one.
   *
   * @param otherwise the primary
   */
  caughtUp(otherwise: Reader, how?: How): Reader
  /** Reads at a replica that may lag by a few seconds. */
  recent(otherwise: Reader): Reader
  states(): readonly ReplicaState[]
  close(): Promise<void>
}

/** `whole`: with whole tables scanned, and more memory, as `wholeTables` reads at the primary. */
export type How = 'by key' | 'whole'

export interface ReplicaState {
  /** `host:port/database` */
  readonly name: string
  readonly isUsed: boolean
  /** How far it is behind the primary, in seconds, as last looked; infinite if that is not known. */
  readonly lagSeconds: number
  /** Reads that it answered. */
  readonly reads: number
}

export interface ReplicasOptions {
  /** How connections to each are made. */
  readonly connections: readonly pg.ClientConfig[]
  readonly primary: Reader
  /** Called when a replica begins to be used, or no longer is, and why. */
  heard(name: string, whyNot: string | undefined): void
}

/** How often it is looked how far replicas are, and how long an answer may take. */
const LOOK_EVERY_MS = 500
const LOOK_PATIENCE_MS = 1_500
/** A replica that is further behind is left out. */
const MAX_LAG_MS = 5_000
/** How long a read waits until a replica has seen what it must see, and how often it looks. */
const CATCH_UP_MS = 300
const CATCH_UP_LOOK_MS = 15
const CONNECTIONS = 4
const KEEP_ALIVE_MS = 10_000
/** Further reads go elsewhere. */
const MAX_WAITING = 8

const MARK = `SELECT pg_current_wal_lsn()::text AS lsn, (SELECT holder FROM node WHERE node = 0) AS holder`
const PROGRESS = `SELECT pg_is_in_recovery() AS is_replica, pg_last_wal_replay_lsn()::text AS lsn,
  (SELECT holder FROM node WHERE node = 0) AS holder`
const UNKNOWN_TABLE = '42P01'
const TOOK_TOO_LONG = '57014'

export function openReplicas({ connections, primary, heard }: ReplicasOptions): Replicas {
  const all = connections.map((connection) => openReplica(connection, heard))
  let isClosed = false
  let next = 0
  let looking = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    const at = performance.now()
    const mark = await primary.query<{ lsn: string; holder: string }>(MARK).catch(() => [])
    // Without the primary, nothing is known of how far they are.
    for (const { lsn, holder } of mark)
      await Promise.all(all.map((one) => one.look({ at, position: positionOf(lsn), holder })))
    if (!isClosed) timer = setTimeout(lookAgain, LOOK_EVERY_MS).unref()
  }

  function lookAgain(): void {
    looking = look()
  }

  function nextFree(): Replica | undefined {
    for (let tried = 0; tried < all.length; tried++) {
      const one = all[next++ % all.length]!
      if (one.isFree()) return one
    }
    return undefined
  }

  const reader = (otherwise: Reader, read: (replica: Replica, text: string, values: Values) => Promise<object[]>) => ({
    async query<Row extends object>(text: string, values: Values = []): Promise<Row[]> {
      const replica = nextFree()
      if (replica === undefined) return otherwise.query<Row>(text, values)
      try {
        return (await read(replica, text, values)) as Row[]
      } catch (error) {
        // What takes too long would take as long again. What is wrong with the query, the primary says too.
        if ((error as { readonly code?: unknown }).code === TOOK_TOO_LONG) throw error
        return otherwise.query<Row>(text, values)
      }
    },
  })

  lookAgain()
  return {
    caughtUp: (otherwise, how = 'by key') =>
      reader(otherwise, async (replica, text, values) => {
        const [mark] = await primary.query<{ lsn: string }>('SELECT pg_current_wal_lsn()::text AS lsn')
        await replica.reach(positionOf(mark!.lsn))
        return how === 'whole' ? replica.readWhole(text, values) : replica.read(text, values)
      }),
    recent: (otherwise) => reader(otherwise, (replica, text, values) => replica.read(text, values)),
    states: () => all.map((one) => one.state()),
    async close() {
      isClosed = true
      clearTimeout(timer)
      await Promise.all(all.map((one) => one.close()))
      await looking
    },
  }
}

/** Where the primary was at a moment of `performance.now()`, and which process had the place of the node that writes. */
interface Mark {
  readonly at: number
  readonly position: Position
  readonly holder: string
}

interface Replica {
  /** Whether it is used, and not too many reads wait for it. */
  isFree(): boolean
  look(mark: Mark): Promise<void>
  /** Resolves when it has seen this position. @throws Error if that takes too long */
  reach(position: Position): Promise<void>
  read(text: string, values: Values): Promise<object[]>
  readWhole(text: string, values: Values): Promise<object[]>
  state(): ReplicaState
  close(): Promise<void>
}

function openReplica(config: pg.ClientConfig, heard: ReplicasOptions['heard']): Replica {
  const watching = new PipelinedConnection(config)
  const pool = new pg.Pool({
    ...config,
    types: WIRE_TYPES,
    max: CONNECTIONS,
    // A machine that vanishes ends no connection: each would be taken for ever.
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  } as pg.PoolConfig)
  pool.on('error', () => {})
  const name = nameOf(config)
  const progress = new ReplicaProgress(MAX_LAG_MS)
  /** Why it is not used. */
  let whyNot: string | undefined = 'nobody has looked at it yet'
  /** In how many looks in a row another process had the place there. */
  let differing = 0
  let isLooking = false
  let reads = 0
  /** Ends the reads that are under way when it is left out. */
  let leaving = new AbortController()

  function judge(next: string | undefined): void {
    if (next === whyNot) return
    if (whyNot === undefined) leaving.abort()
    leaving = new AbortController()
    whyNot = next
    heard(name, whyNot)
  }

  /** Finds out why it may not be used; where that is not clear yet, what was true before stays. */
  async function ask(mark: Mark): Promise<string | undefined> {
    progress.mark(mark)
    const [found] = await watching.query<{ is_replica: boolean; lsn: string | null; holder: string | null }>(PROGRESS)
    if (!found?.is_replica) return 'it is no replica: it takes writes itself'
    progress.reached(found.lsn === null ? 0n : positionOf(found.lsn))
    // Who had the place is written in the database: no other one says the same.
    const differs = progress.has(mark.position) && found.holder !== mark.holder
    differing = differs ? differing + 1 : 0
    // Once it may be that the place was taken between the two looks.
    if (differs) return differing > 1 ? 'it is a replica of another database' : whyNot
    const now = performance.now()
    if (progress.isNear(now)) return undefined
    return progress.isFar(now) ? 'it is too far behind the primary' : whyNot
  }

  const whileUsed = <T>(work: Promise<T>): Promise<T> => {
    const { signal } = leaving
    return new Promise((resolve, reject) => {
      const leave = () => reject(new Error('this replica is not used any more'))
      signal.addEventListener('abort', leave, { once: true })
      work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
    })
  }

  return {
    isFree: () => whyNot === undefined && progress.isNear(performance.now()) && pool.waitingCount < MAX_WAITING,
    async look(mark) {
      // What is not answered yet counts as not answered.
      if (isLooking) return judge('it does not answer')
      isLooking = true
      const answer = ask(mark)
        .catch((error: { readonly code?: string }) =>
          error.code === UNKNOWN_TABLE ? 'it has no database of this server' : 'it does not answer',
        )
        .finally(() => {
          isLooking = false
        })
      judge(await soon(answer, 'it does not answer'))
    },
    async reach(position) {
      for (const until = performance.now() + CATCH_UP_MS; !progress.has(position); ) {
        const [found] = await whileUsed(watching.query<{ lsn: string }>('SELECT pg_last_wal_replay_lsn()::text AS lsn'))
        progress.reached(positionOf(found!.lsn))
        if (progress.has(position)) return
        if (performance.now() > until) throw new Error('this replica is behind')
        await new Promise((resolve) => setTimeout(resolve, CATCH_UP_LOOK_MS))
      }
    },
    async read(text, values) {
      const { rows } = await whileUsed(pool.query(prepared(text, values, true)))
      reads++
      return rows
    },
    async readWhole(text, values) {
      const connecting = pool.connect()
      const client = await whileUsed(connecting).catch((error: unknown) => {
        void connecting.then(
          (late) => late.release(true),
          () => {},
        )
        throw error
      })
      let failure: Error | undefined
      try {
        await client.query(command('BEGIN READ ONLY'))
        await client.query(`SELECT set_config('enable_seqscan', 'on', true), set_config('work_mem', '32MB', true)`)
        const { rows } = await whileUsed(client.query(prepared(text, values, true)))
        await client.query(command('COMMIT'))
        reads++
        return rows
      } catch (error) {
        failure = error as Error
        throw error
      } finally {
        client.release(failure)
      }
    },
    state: () => ({ name, isUsed: whyNot === undefined, lagSeconds: progress.lagMs(performance.now()) / 1000, reads }),
    async close() {
      leaving.abort()
      // One that is away says no farewell, and a read that nobody wants any more holds nobody up.
      const closed = Promise.all([watching.close(), pool.end()])
      await soon(
        closed.catch(() => {}),
        undefined,
      )
    },
  }
}

function soon<T>(answer: Promise<T>, otherwise: T): Promise<T> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(otherwise), LOOK_PATIENCE_MS)
    void answer.then((value) => {
      clearTimeout(timer)
      resolve(value)
    })
  })
}

/** Without its user and password. */
function nameOf({ connectionString, host, port, database }: pg.ClientConfig): string {
  if (connectionString === undefined) return `${host}:${port}/${database}`
  const url = new URL(connectionString)
  return `${url.host || (url.searchParams.get('host') ?? '')}${url.pathname}`
}
