import type { Reader } from './db.ts'

// Tables of Postgres: pg_stat_user_tables, pg_stat_statements, pg_stat_activity, pg_extension, pg_settings

/** The text of statements is that of this source, with numbers for values; others, such as what an operator types, are left out. */
const OF_THE_SOURCE = String.raw`query ~* '^\s*(select|insert|update|delete|with)\s' AND length(query) < 20000`

export interface DatabaseReport {
  readonly version: string
  readonly settings: Readonly<Record<string, string>>
  readonly bytes: number
  readonly tables: readonly object[]
  /** By their total time since the statistics began, or those that run now where the extension pg_stat_statements is not there. */
  readonly slow_statements: {
    readonly source: 'pg_stat_statements' | 'pg_stat_activity'
    readonly rows: readonly object[]
  }
}

const SETTINGS = [
  'server_version',
  'max_connections',
  'shared_buffers',
  'work_mem',
  'effective_cache_size',
  'fsync',
  'synchronous_commit',
  'wal_level',
  'autovacuum',
  'random_page_cost',
]

/** What Postgres says of itself. No value of a row or a parameter is in it. */
export async function reportDatabase(reader: Reader): Promise<DatabaseReport> {
  const [about] = await reader.query<{ version: string; bytes: number }>(
    'SELECT version() AS version, pg_database_size(current_database()) AS bytes',
  )
  const settings = await reader.query<{ name: string; setting: string }>(
    'SELECT name, setting FROM pg_settings WHERE name = ANY($1)',
    [SETTINGS],
  )
  const tables = await reader.query(
    `SELECT relname AS name, n_live_tup AS rows, n_dead_tup AS dead_rows, pg_total_relation_size(relid) AS bytes,
       last_autovacuum::text, last_autoanalyze::text FROM pg_stat_user_tables ORDER BY pg_total_relation_size(relid) DESC LIMIT 60`,
  )
  return {
    version: about?.version ?? '',
    settings: Object.fromEntries(settings.map(({ name, setting }) => [name, setting])),
    bytes: about?.bytes ?? 0,
    tables,
    slow_statements: await slowStatements(reader),
  }
}

async function slowStatements(reader: Reader): Promise<DatabaseReport['slow_statements']> {
  try {
    const rows = await reader.query(
      `SELECT query, calls, round(total_exec_time::numeric, 1)::text AS total_ms, round(mean_exec_time::numeric, 3)::text AS mean_ms,
         round(max_exec_time::numeric, 1)::text AS max_ms, rows
       FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND ${OF_THE_SOURCE}
       ORDER BY total_exec_time DESC LIMIT 50`,
    )
    return { source: 'pg_stat_statements', rows }
  } catch {
    // The extension is not installed or not loaded, or this role may not read it.
    return { source: 'pg_stat_activity', rows: await runningStatements(reader) }
  }
}

function runningStatements(reader: Reader): Promise<object[]> {
  return reader.query(
    `SELECT state, wait_event_type, wait_event, round(extract(epoch FROM now() - query_start)::numeric, 1)::text AS seconds, query
     FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ '^hearth( [0-9a-f]{16})?$' AND pid <> pg_backend_pid()
       AND query ~ '\\$1|^\\s*SELECT ' AND query !~ $1 AND ${OF_THE_SOURCE}
     ORDER BY query_start LIMIT 50`,
    // A statement with a value in quotes is none of ours: ours have numbers for values, and short words only.
    [`'[^']{40,}'`],
  )
}
