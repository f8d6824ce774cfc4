import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import type { BackedUpTable } from '../../core/backup/manifest.ts'
import type { Tx } from '../db/db.ts'
import { migrate, RESTORING, WHY_RESTORING } from '../db/migrate.ts'
import { WIRE_TYPES } from '../db/wire-types.ts'
import { isWriterPresent, WRITER } from '../db/writer-lock.ts'
import { SEQUENCE_GAP } from './skip-numbers.ts'
import { quoted } from './snapshot.ts'

// Tables: restore_file, restore_index, which exist during a restore only; all others are filled.

/** What a database holds before a restore. */
export type TargetState =
  | { readonly kind: 'empty' }
  /** A restore of this backup was cut off. */
  | { readonly kind: 'begun'; readonly backupId: string }
  /** Another database, and whether a server is using it. */
  | { readonly kind: 'used'; readonly isServing: boolean }

/** A database that a backup is brought back into. */
export interface RestoreTarget {
  state(): Promise<TargetState>
  /** Removes what a restore that was cut off has left. */
  clear(): Promise<void>
  /** Makes the tables as they were when the backup was made, without indexes. May be repeated after a kill. */
  begin(backupId: string, migrations: string, names: ReadonlySet<string>): Promise<void>
  /** The files that are in already. */
  loaded(): Promise<Set<string>>
  /** Fills in rows, together with the note that it did. @throws Error for what is no table of the migrations, such as those of the restore */
  load(table: BackedUpTable, file: string, rows: Buffer): Promise<void>
  /** The statements that make indexes and constraints, in their order. Each may be run again until it is removed from the list. */
  indexes(): Promise<readonly { readonly ordinal: number; readonly sql: string }[]>
  makeIndex(index: { readonly ordinal: number; readonly sql: string }): Promise<void>
  /** Sets the sequences to numbers above all that were given out. */
  setSequences(sequences: readonly { readonly name: string; readonly last: number | null }[]): Promise<void>
  /** Runs the last step in one transaction, at whose end the database is whole. */
  finish(work: (tx: Tx) => Promise<void>): Promise<void>
  close(): Promise<void>
}

const PIECE_BYTES = 256 * 1024

type Query = <Row extends object>(text: string, values?: readonly unknown[]) => Promise<Row[]>

export async function openRestoreTarget(connection: pg.ClientConfig): Promise<RestoreTarget> {
  // A power failure may take back what was filled in, together with the note that it was.
  const settings = '-c statement_timeout=0 -c synchronous_commit=off -c maintenance_work_mem=256MB'
  const client = new pg.Client({
    ...connection,
    types: WIRE_TYPES,
    application_name: 'hearth restore',
    options: settings,
  })
  client.on('error', () => {})
  await client.connect()
  const query: Query = async <Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> =>
    (await client.query<Row & pg.QueryResultRow>(text, values as unknown[])).rows

  async function inTransaction(work: () => Promise<void>): Promise<void> {
    await query('BEGIN')
    try {
      await work()
      await query('COMMIT')
    } catch (error) {
      await query('ROLLBACK').catch(() => {})
      throw error
    }
  }

  let fillable: Promise<Set<string>> | undefined
  const findFillable = async () => namesOf(await query<{ name: string }>(TABLES, [OWN_TABLES]))

  async function loaded(): Promise<Set<string>> {
    return namesOf(await query<{ name: string }>('SELECT name FROM restore_file'))
  }

  return {
    loaded,
    state: () => stateOf(query),
    async clear() {
      const tables = await query<{ name: string }>(TABLES, [[]])
      const sequences = await query<{ name: string }>(
        `SELECT c.relname AS name FROM pg_class c WHERE relkind = 'S' AND relnamespace = current_schema()::regnamespace
         AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i'))`,
      )
      const functions = await query<{ name: string }>(TRIGGER_FUNCTIONS)
      await inTransaction(async () => {
        for (const { name } of tables) await query(`DROP TABLE ${quoted(name)} CASCADE`)
        for (const { name } of functions) await query(`DROP FUNCTION ${name}`)
        for (const { name } of sequences) await query(`DROP SEQUENCE ${quoted(name)}`)
      })
    },
    async begin(backupId, migrations, names) {
      await inTransaction(() => mark(query, backupId))
      if ((await loaded()).has('')) return
      await migrate(connection, migrations, { only: names })
      await inTransaction(() => takeIndexesOff(query))
    },
    async load({ name, columns }, file, rows) {
      fillable ??= findFillable()
      // The manifest may be anybody's. What stands in `restore_index` is run, and catalogs of Postgres are tables too.
      if (!(await fillable).has(name)) throw new Error(`the backup has rows of "${name}", which is no table of Hearth`)
      const { from } = await import('pg-copy-streams')
      await inTransaction(async () => {
        const copying = client.query(from(`COPY ${quoted(name)} (${columns.map(quoted).join(', ')}) FROM STDIN`))
        await pipeline(Readable.from(piecesOf(rows), { objectMode: false }), copying)
        await query('INSERT INTO restore_file (name) VALUES ($1)', [file])
      })
    },
    indexes: () => query('SELECT ordinal, sql FROM restore_index ORDER BY ordinal'),
    makeIndex: ({ ordinal, sql }) =>
      inTransaction(async () => {
        await query(sql)
        await query('DELETE FROM restore_index WHERE ordinal = $1', [ordinal])
      }),
    async setSequences(sequences) {
      for (const { name, last } of sequences) {
        await query(
          `SELECT setval(c.oid::regclass, $2::bigint) FROM pg_class c
           WHERE c.relname = $1 AND c.relkind = 'S' AND c.relnamespace = current_schema()::regnamespace`,
          [name, (last ?? 0) + SEQUENCE_GAP],
        )
      }
    },
    async finish(work) {
      await query('ANALYZE')
      await query('SET synchronous_commit = on')
      await inTransaction(async () => {
        await setTriggers(query, 'ENABLE')
        await work({ query } as unknown as Tx)
        await query('DROP TABLE restore_file, restore_index')
        await query('DELETE FROM schema_migration WHERE name = $1', [RESTORING])
      })
    },
    close: () => client.end(),
  }
}

async function mark(query: Query, backupId: string): Promise<void> {
  await query(`CREATE TABLE IF NOT EXISTS schema_migration (
    name text COLLATE "C" PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now(), breaking text)`)
  await query('INSERT INTO schema_migration (name, checksum, breaking) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING', [
    ...[RESTORING, backupId, WHY_RESTORING],
  ])
  await query('CREATE TABLE IF NOT EXISTS restore_file (name text PRIMARY KEY)')
  await query('CREATE TABLE IF NOT EXISTS restore_index (ordinal integer PRIMARY KEY, sql text NOT NULL)')
}

/** Rows are filled in without indexes, which are made afterwards: that is faster. Constraints on other tables wait for those too. */
async function takeIndexesOff(query: Query): Promise<void> {
  const found = await query<{ make: string; take: string }>(INDEXES, [OWN_TABLES])
  for (const [ordinal, { make }] of found.entries())
    await query('INSERT INTO restore_index (ordinal, sql) VALUES ($1, $2)', [ordinal, make])
  for (const { take } of found.toReversed()) await query(take)
  const tables = await query<{ name: string }>(TABLES, [OWN_TABLES])
  // Some migrations put rows into what they make.
  if (tables.length > 0) await query(`TRUNCATE ${tables.map(({ name }) => quoted(name)).join(', ')}`)
  // What is filled in was noted when it happened.
  await setTriggers(query, 'DISABLE')
  // Its row says that all of this is done.
  await query(`INSERT INTO restore_file (name) VALUES ('')`)
}

async function setTriggers(query: Query, to: 'DISABLE' | 'ENABLE'): Promise<void> {
  const tables = await query<{ name: string }>(
    `SELECT DISTINCT c.relname AS name FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
     WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace`,
  )
  for (const { name } of tables) await query(`ALTER TABLE ${quoted(name)} ${to} TRIGGER USER`)
}

async function stateOf(query: Query): Promise<TargetState> {
  const [found] = await query<{ tables: number; mark: string | null }>(
    `SELECT count(*)::int AS tables, to_regclass('schema_migration')::text AS mark
     FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relnamespace = current_schema()::regnamespace`,
  )
  if (found!.tables === 0) return { kind: 'empty' }
  const [row] =
    found!.mark === null
      ? []
      : await query<{ checksum: string }>('SELECT checksum FROM schema_migration WHERE name = $1', [RESTORING])
  if (row) return { kind: 'begun', backupId: row.checksum }
  const isServing = await isWriterPresent({ query }, WRITER)
  return { kind: 'used', isServing }
}

const namesOf = (rows: readonly { readonly name: string }[]): Set<string> => new Set(rows.map(({ name }) => name))

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
}

/** Not of a backup, and not touched. */
const OWN_TABLES = ['schema_migration', 'restore_file', 'restore_index']

const TABLES = `SELECT c.relname AS name FROM pg_class c
  WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname <> ALL ($1::text[])`

/** Those of our tables, which do not go with them. */
const TRIGGER_FUNCTIONS = `SELECT DISTINCT p.oid::regprocedure::text AS name
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
  WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace AND p.pronamespace = c.relnamespace`

/** What is taken off and made again: keys first, then indexes, then references to other tables, which need the keys. */
const INDEXES = `SELECT make, take FROM (
    SELECT CASE con.contype WHEN 'f' THEN 2 ELSE 0 END AS turn, con.conname AS name,
      format('ALTER TABLE %s ADD CONSTRAINT %I %s', con.conrelid::regclass, con.conname, pg_get_constraintdef(con.oid)) AS make,
      format('ALTER TABLE %s DROP CONSTRAINT %I', con.conrelid::regclass, con.conname) AS take, con.conrelid AS of
    FROM pg_constraint con WHERE con.contype IN ('p', 'u', 'x', 'f') AND con.connamespace = current_schema()::regnamespace
    UNION ALL
    SELECT 1, i.relname, pg_get_indexdef(i.oid), format('DROP INDEX %s', i.oid::regclass), x.indrelid
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
    WHERE i.relnamespace = current_schema()::regnamespace
      AND NOT EXISTS (SELECT FROM pg_constraint con WHERE con.conindid = i.oid AND con.contype IN ('p', 'u', 'x'))
  ) AS found JOIN pg_class t ON t.oid = found.of WHERE t.relname <> ALL ($1::text[]) ORDER BY turn, name`
