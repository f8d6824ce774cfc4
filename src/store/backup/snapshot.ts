import type { Readable } from 'node:stream'
import pg from 'pg'
import type { BackedUpMigration } from '../../core/backup/manifest.ts'
import { MIGRATION_LOCK } from '../db/migrate.ts'
import { WIRE_TYPES } from '../db/wire-types.ts'
import { lastPosition } from '../events/events.ts'

// Tables: all are read. The words of `search_text` are not: they are made again from the events.

export interface SnapshotTable {
  readonly name: string
  readonly columns: readonly string[]
  /** About how many bytes its rows take, for showing progress. */
  readonly bytes: number
}

/** The database as it was at one moment, whatever is written meanwhile. */
export interface Snapshot {
  /** The process of Postgres that reads it. */
  readonly backend: number
  readonly postgres: number
  readonly serverName: string
  readonly migrations: readonly BackedUpMigration[]
  readonly tables: readonly SnapshotTable[]
  /** Of all tables on disk, with their indexes. */
  readonly bytes: number
  readonly eventPosition: number
  readonly ledgerPosition: number
  /** The rows of a table in the text form of COPY: a line each. Read one table to its end before the next. */
  copy(table: SnapshotTable): Promise<Readable>
  /** Lines of `<sha256 in hex> <bytes>` for the stored content of media, in order. */
  storedContent(): Promise<Readable>
  /** Read after the rows: sequences stand outside of snapshots, so each is at or above the numbers in the rows. */
  sequences(): Promise<{ name: string; last: number | null }[]>
  close(): Promise<void>
}

/** One backup at a time; any number that no other lock here uses. */
const BACKUP_LOCK = 0x4865_6270
const DERIVED = new Set(['search_text'])

/**
 * Keeps other backups of this database from being made, until it is released. They would remove what this one is still writing, and the
 * media that its manifest is about to name.
 *
 * @throws Error if another backup is running
 */
export async function lockBackups(connection: pg.ClientConfig): Promise<{ release(): Promise<void> }> {
  const settings = '-c idle_session_timeout=0'
  const client = new pg.Client({ ...connection, application_name: 'hearth backup', keepAlive: true, options: settings })
  client.on('error', () => {})
  await client.connect()
  const { rows } = await client.query<{ taken: boolean }>(`SELECT pg_try_advisory_lock(${BACKUP_LOCK}) AS taken`)
  if (rows[0]?.taken === true) return { release: () => client.end() }
  await client.end()
  throw new Error('another backup of this database is running: wait until it has ended')
}

export async function openSnapshot(connection: pg.ClientConfig): Promise<Snapshot> {
  const settings = '-c statement_timeout=0 -c idle_in_transaction_session_timeout=0 -c lock_timeout=30s'
  const client = new pg.Client({
    ...connection,
    types: WIRE_TYPES,
    application_name: 'hearth backup',
    options: settings,
  })
  // Whoever reads from it hears of a lost connection too.
  client.on('error', () => {})
  await client.connect()
  try {
    const one = async <Row extends object>(text: string): Promise<Row[]> =>
      (await client.query<Row & pg.QueryResultRow>(text)).rows
    // Nobody changes the form of tables between here and the locks. The list of migrations is read outside of the transaction, which would
    // hold up whoever starts meanwhile.
    await client.query(`SELECT pg_advisory_lock_shared(${MIGRATION_LOCK})`)
    const migrations = await one<BackedUpMigration>('SELECT name, checksum FROM schema_migration ORDER BY name')
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const tables = (await one<SnapshotTable>(TABLES)).filter(({ name }) => name !== 'schema_migration')
    // So that no table is emptied, or changed in its form, before it was read.
    await client.query(`LOCK TABLE ${tables.map(({ name }) => quoted(name)).join(', ')} IN ACCESS SHARE MODE`)
    await client.query(`SELECT pg_advisory_unlock_shared(${MIGRATION_LOCK})`)
    return await readSnapshot(client, one, migrations, tables)
  } catch (error) {
    await client.end().catch(() => {})
    throw error
  }
}

type Query = <Row extends object>(text: string) => Promise<Row[]>

async function readSnapshot(
  client: pg.Client,
  query: Query,
  migrations: readonly BackedUpMigration[],
  tables: readonly SnapshotTable[],
): Promise<Snapshot> {
  const [facts] = await query<{ backend: number; postgres: number; name: string; bytes: number; ledger: number }>(FACTS)
  const { to } = await import('pg-copy-streams')
  const stream = async (text: string): Promise<Readable> => client.query(to(text))
  return {
    backend: facts!.backend,
    postgres: facts!.postgres,
    serverName: facts!.name,
    bytes: facts!.bytes,
    migrations,
    eventPosition: await lastPosition(
      { query: (text, values) => client.query(text, values as unknown[]).then(({ rows }) => rows as never) },
      0,
    ),
    ledgerPosition: facts!.ledger,
    tables: tables.filter(({ name }) => !DERIVED.has(name)),
    copy: ({ name, columns }) => stream(`COPY ${quoted(name)} (${columns.map(quoted).join(', ')}) TO STDOUT`),
    storedContent: () =>
      stream(
        `COPY (SELECT encode(digest, 'hex') || ' ' || bytes FROM media_content WHERE is_stored ORDER BY digest) TO STDOUT`,
      ),
    sequences: () =>
      query(
        'SELECT sequencename AS name, last_value AS last FROM pg_sequences WHERE schemaname = current_schema() ORDER BY 1',
      ),
    close: () => client.end(),
  }
}

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

const TABLES = `SELECT c.relname AS name, pg_table_size(c.oid) AS bytes,
    array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attgenerated = '') AS columns
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND c.relnamespace = current_schema()::regnamespace
  GROUP BY c.oid ORDER BY c.relname`

const FACTS = `SELECT pg_backend_pid() AS backend, current_setting('server_version_num')::int AS postgres, (SELECT name FROM server_name) AS name,
    (SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace)::bigint AS bytes,
    (SELECT position FROM ledger) AS ledger`
