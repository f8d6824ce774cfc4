import { existsSync } from 'node:fs'
import pg from 'pg'
import type { Config } from '../../config/schema.ts'
import { findRunningPostgres } from '../../store/embedded/embedded-postgres.ts'
import { OLDEST_POSTGRES, postgresDirectory } from '../database.ts'
import { type Finding, ok, problem, skipped, warning } from './finding.ts'

interface Facts {
  readonly version: number
  readonly name: string
  readonly encoding: string
  readonly locale: string
  readonly fsync: string
  readonly synchronous_commit: string
  readonly full_page_writes: string
  readonly max_connections: number
  readonly bytes: string
  readonly now: number
  readonly has_owner: boolean
}

const FACTS = `
  SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS name,
    pg_encoding_to_char(d.encoding) AS encoding, d.datcollate AS locale,
    current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('max_connections')::int AS max_connections,
    pg_size_pretty(pg_database_size(d.oid)) AS bytes,
    (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now,
    to_regclass('server_name') IS NOT NULL AS has_owner
  FROM pg_database d WHERE d.datname = current_database()`

const ROUND_TRIPS = 9
/** Connections beside the pool: for reads, events, streams, and one for commands. */
const OTHER_CONNECTIONS = 5
const CONNECT_TIMEOUT_MS = 5_000

/** Checks the Postgres: its version, its durability settings, and its speed. Writes nothing. */
export async function examineDatabase(config: Config, now: () => number): Promise<readonly Finding[]> {
  const { url } = config.database
  if (url === undefined && !existsSync(postgresDirectory(config))) {
    return [skipped('Postgres', 'this server brings its own, which is made at the first start')]
  }
  const running = url === undefined && (await findRunningPostgres({ directory: postgresDirectory(config) }))
  if (running === undefined) return [skipped('Postgres', 'runs with the server, which does not run now')]
  const client = new pg.Client({
    ...(running || { connectionString: url }),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  })
  try {
    await client.connect()
    return await examine(client, config, now)
  } catch (error) {
    const advice = 'see database.url, and whether that Postgres runs and lets this machine in'
    return [problem('Postgres', `does not answer: ${(error as Error).message}`, advice)]
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function examine(client: pg.Client, config: Config, now: () => number): Promise<readonly Finding[]> {
  const begun = now()
  const [facts] = (await client.query<Facts>(FACTS)).rows as [Facts]
  const offMs = facts.now - (begun + now()) / 2
  const owner = facts.has_owner
    ? (await client.query<{ name: string }>('SELECT name FROM server_name')).rows[0]
    : undefined
  return [
    version(facts),
    belonging(config, owner?.name),
    encoding(facts),
    durability(facts),
    connections(facts, config),
    await speed(client),
    clock(offMs),
  ]
}

function version({ version: number, name, bytes }: Facts): Finding {
  if (number >= OLDEST_POSTGRES) return ok('Postgres', `${name}, ${bytes}`)
  return problem('Postgres', `${name} is too old`, 'move to Postgres 14 or later')
}

function belonging({ server_name }: Config, owner: string | undefined): Finding {
  if (owner === undefined) return ok('contents', 'empty; filled at the first start')
  if (owner === server_name) return ok('contents', `those of ${owner}`)
  const advice = 'set server_name back, or use another database: the name is part of every id'
  return problem('contents', `belong to ${owner}, and server_name is ${server_name}`, advice)
}

function encoding({ encoding: name, locale }: Facts): Finding {
  if (name === 'UTF8') return ok('encoding', `UTF8; locale ${locale}, on which nothing here depends`)
  const advice =
    "make a new database: CREATE DATABASE hearth ENCODING 'UTF8' TEMPLATE template0, and move the data there"
  return problem('encoding', `${name}: not every message can be stored`, advice)
}

function durability({ fsync, synchronous_commit, full_page_writes }: Facts): Finding {
  if (fsync !== 'on' || full_page_writes !== 'on') {
    const what = fsync === 'on' ? 'full_page_writes' : 'fsync'
    return problem('durability', `${what} is off: a power failure may destroy the database`, `set ${what} = on`)
  }
  if (synchronous_commit === 'off') {
    const advice = 'set synchronous_commit = on'
    return warning('durability', 'synchronous_commit is off: a crash loses what was confirmed last', advice)
  }
  return ok('durability', 'fsync, full_page_writes and synchronous_commit are on')
}

function connections({ max_connections }: Facts, { database, cluster }: Config): Finding {
  // Nodes that stand by use no pool; but while one hands over to another, both have all of theirs.
  const needed = Math.min(cluster.nodes, 2) * database.pool_size + cluster.nodes * OTHER_CONNECTIONS
  if (max_connections >= needed) return ok('connections', `${needed} of ${max_connections}`)
  const advice = 'raise max_connections of Postgres, or lower database.pool_size or cluster.nodes'
  return problem('connections', `${needed} are needed, ${max_connections} there are`, advice)
}

async function speed(client: pg.Client): Promise<Finding> {
  const times: number[] = []
  for (let count = 0; count < ROUND_TRIPS; count++) {
    const begun = performance.now()
    await client.query('SELECT 1')
    times.push(performance.now() - begun)
  }
  const median = times.sort((a, b) => a - b)[Math.floor(ROUND_TRIPS / 2)]!
  const text = `a round trip takes ${median.toFixed(2)} ms`
  return median < 5
    ? ok('speed', text)
    : warning('speed', text, 'bring Postgres nearer: every request waits for several')
}

function clock(offMs: number): Finding {
  const text = `${(Math.abs(offMs) / 1000).toFixed(1)} s from this machine's`
  return Math.abs(offMs) < 2_000
    ? ok('its clock', text)
    : warning('its clock', text, 'let a time service set both clocks')
}
