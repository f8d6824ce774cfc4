import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import { type Database, openDatabase } from '../store/db/db.ts'
import { prepareDatabase } from '../store/db/prepare.ts'
import {
  type EmbeddedPostgres,
  findRunningPostgres,
  startEmbeddedPostgres,
} from '../store/embedded/embedded-postgres.ts'
import { ARCHIVE_SETTINGS } from '../store/embedded/wal-archive.ts'
import type { Host } from './command.ts'
import { createLog } from './serve/log.ts'

export const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url))

export const OLDEST_POSTGRES = 140_000

/** Connections of a node beside its pool, and those of commands, backups and the process that started the nodes. */
const NODE_CONNECTIONS = 19
const OTHER_CONNECTIONS = 25

export interface RunningDatabase {
  readonly connection: pg.ClientConfig
  /** Undefined if `database.url` names another Postgres. */
  readonly embedded: EmbeddedPostgres | undefined
  stop(): Promise<void>
}

/** Connects to the Postgres of `database.url`, or starts our own. */
export async function startDatabase(config: Config, uid: number, log: Logger): Promise<RunningDatabase> {
  const { url } = config.database
  if (url !== undefined) {
    await greet(url, log)
    return { connection: { connectionString: url }, embedded: undefined, stop: async () => {} }
  }
  const copy = async (from: pg.ClientConfig, to: pg.ClientConfig) => {
    const { copyDatabase } = await import('../domain/backup/copy-database.ts')
    await copyDatabase(from, to, MIGRATIONS, (step) => log.info(`copying ${step}`))
  }
  const directory = postgresDirectory(config)
  const settings = {
    ...(config.backup.point_in_time && ARCHIVE_SETTINGS),
    max_connections: `${ownConnections(config)}`,
  }
  const embedded = await startEmbeddedPostgres({ directory, uid, log, copy, settings })
  return { connection: embedded.connection, embedded, stop: embedded.stop }
}

/** How many connections our own Postgres takes: as many as this configuration can use. */
export function ownConnections({ cluster, database }: Pick<Config, 'cluster' | 'database'>): number {
  // Those that stand by use no pool; but while one node hands over to another, both have all of theirs.
  const pools = Math.min(cluster.nodes, 2)
  return OTHER_CONNECTIONS + cluster.nodes * NODE_CONNECTIONS + pools * database.pool_size
}

/** The database of a process that serves beside others: they have started it, if it is not that of `database.url`. */
export async function findDatabase(config: Config): Promise<RunningDatabase> {
  const { url } = config.database
  const connection =
    url === undefined ? await findRunningPostgres({ directory: postgresDirectory(config) }) : { connectionString: url }
  if (connection === undefined) throw new Error('the process that started this node has ended')
  return { connection, embedded: undefined, stop: async () => {} }
}

/** Whether there is a database to be looked at: one is named, or our own was made before. */
export async function isDatabaseAtHand(config: Config): Promise<boolean> {
  return config.database.url !== undefined || existsSync(join(postgresDirectory(config), 'cluster', 'PG_VERSION'))
}

/** The database for commands beside a running server: the server's Postgres if it runs, else our own for the time of the command. */
export async function borrowDatabase(config: Config, uid: number, log: Logger): Promise<RunningDatabase> {
  const running =
    config.database.url === undefined && (await findRunningPostgres({ directory: postgresDirectory(config) }))
  return running ? { connection: running, embedded: undefined, stop: async () => {} } : startDatabase(config, uid, log)
}

/** Runs work in the database, with the server running or stopped. */
export async function withDatabase<T>(host: Host, config: Config, work: (db: Database) => Promise<T>): Promise<T> {
  const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
  const database = await borrowDatabase(config, host.uid, log)
  try {
    await prepareDatabase(database.connection, MIGRATIONS, config.server_name)
    const db = openDatabase({ connection: database.connection, poolSize: 1 })
    try {
      return await work(db)
    } finally {
      await db.close()
    }
  } finally {
    await database.stop()
  }
}

/** Checks the Postgres of `database.url`, and explains problems to the operator. */
async function greet(url: string, log: Logger): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 })
  try {
    await client.connect()
    const { rows } = await client.query<{ version: number; fsync: string }>(
      "SELECT current_setting('server_version_num')::int AS version, current_setting('fsync') AS fsync",
    )
    const [{ version, fsync } = { version: 0, fsync: '' }] = rows
    if (version < OLDEST_POSTGRES)
      throw new Error(`Postgres 14 or later is needed, this is ${Math.floor(version / 10_000)}`)
    if (fsync !== 'on') log.warn('this Postgres runs with fsync off: a power failure may lose or damage data')
  } catch (error) {
    throw new Error(`the database of database.url cannot be used: ${(error as Error).message}`)
  } finally {
    await client.end().catch(() => undefined)
  }
}

export function postgresDirectory(config: Config): string {
  return join(config.data_dir, 'postgres')
}
