import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { type MigrationStep, stepsOf, type Work } from './migration-steps.ts'

// Table: schema_migration

export interface Migration {
  readonly number: number
  readonly name: string
  readonly sql: string
  /** sha256 of the file, hex. A recorded migration whose file changed stops the start. */
  readonly checksum: string
  /** Why the previous release cannot run on a database with this migration (`--! breaking: ...`); undefined if it can. */
  readonly breaking: string | undefined
}

export interface MigrationPlan {
  /** The major version of Postgres. */
  readonly postgres: number
  readonly applied: readonly string[]
  readonly pending: readonly string[]
  /** Migrations of a newer release that do not break this one. */
  readonly newer: readonly string[]
  /** What those that are pending do. */
  readonly plans: readonly PlannedMigration[]
}

export interface PlannedMigration {
  readonly name: string
  readonly breaking: string | undefined
  /** With the rows of its tables, by the statistics of Postgres, and how long they may take. */
  readonly steps: readonly (MigrationStep & { readonly rows: number; readonly seconds: number })[]
}

export interface Migrated {
  readonly applied: readonly string[]
  /** Migrations of a newer release that were applied before and do not break this one. */
  readonly newer: readonly string[]
}

interface Recorded {
  readonly name: string
  readonly checksum: string
  readonly breaking: string | null
}

/** One lock for every process that migrates this database; any constant does. */
export const MIGRATION_LOCK = 0x4865_6172

const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/

/** The migrations of a folder in their order. Throws on a name that does not fit and on a number used twice. */
export async function readMigrations(directory: string): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort()
  const migrations = names.map((name) => {
    const number = Number(FILE_NAME.exec(name)?.[1])
    if (!number) throw new Error(`${join(directory, name)}: a migration is named NNNN_words.sql`)
    // Many small files: to wait for each takes six times the processor time of reading it.
    const sql = readFileSync(join(directory, name), 'utf8')
    const checksum = createHash('sha256').update(sql).digest('hex')
    return { number, name, sql, checksum, breaking: breakingOf(name, sql) }
  })
  const twice = migrations.find((migration, index) => migrations[index - 1]?.number === migration.number)
  if (twice) throw new Error(`${twice.name}: its number is used by another migration`)
  return migrations
}

const BREAKING = /^--!\s*breaking\b:?[ \t]*(.*)$/m

function breakingOf(name: string, sql: string): string | undefined {
  const reason = BREAKING.exec(sql)?.[1]?.trim()
  if (reason === '') throw new Error(`${name}: \`--! breaking\` is followed by the reason`)
  return reason
}

async function recorded(client: pg.Client): Promise<Map<string, Recorded>> {
  await client.query(`CREATE TABLE IF NOT EXISTS schema_migration (
    name text COLLATE "C" PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`)
  // Told to older releases, which do not have the file: why they cannot run on it.
  await client.query('ALTER TABLE schema_migration ADD COLUMN IF NOT EXISTS breaking text')
  const { rows } = await client.query<Recorded>('SELECT name, checksum, breaking FROM schema_migration')
  return new Map(rows.map((row) => [row.name, row]))
}

/**
 * A row that stands among the migrations while a backup is brought back: no release starts on half a database. Its checksum is the id of
 * the backup.
 */
export const RESTORING = '9999_restoring.sql'
export const WHY_RESTORING = 'a backup is being brought back into it and is not whole yet'

/** The migrations of newer releases in this database. @throws Error if one of them breaks this release */
function newerThan(migrations: readonly Migration[], done: ReadonlyMap<string, Recorded>): string[] {
  if (done.has(RESTORING))
    throw new Error(
      `This database cannot be used: ${WHY_RESTORING}. Finish it with \`hearth restore\`, or begin with an empty database.`,
    )
  const known = new Set(migrations.map((migration) => migration.name))
  const newer = [...done.values()].filter(({ name }) => !known.has(name) && name > (migrations.at(-1)?.name ?? ''))
  const breaking = newer.filter((each) => each.breaking !== null)
  if (breaking.length === 0) return newer.map(({ name }) => name)
  const why = breaking.map(({ name, breaking: reason }) => `${name}: ${reason}`).join('; ')
  throw new Error(
    `The database was migrated by a newer Hearth, and this one cannot run on it (${why}). Start that version, or restore a backup.`,
  )
}

function pendingOf(migrations: readonly Migration[], done: ReadonlyMap<string, Recorded>): Migration[] {
  for (const { name, checksum } of migrations) {
    const applied = done.get(name)?.checksum
    if (applied !== undefined && applied !== checksum) {
      throw new Error(`${name} was changed after it had been applied to this database. Restore the file as released.`)
    }
  }
  return migrations.filter(({ name }) => !done.has(name))
}

export async function connected<T>(connection: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** The migrations among these that a folder does not have, or has in another form. */
export async function foreignMigrations(
  directory: string,
  recorded: readonly Pick<Migration, 'name' | 'checksum'>[],
): Promise<string[]> {
  const known = new Map((await readMigrations(directory)).map(({ name, checksum }) => [name, checksum]))
  return recorded.filter(({ name, checksum }) => known.get(name) !== checksum).map(({ name }) => name)
}

/** What `migrate` would do. Writes nothing. @throws Error for a database that `migrate` refuses, and one of something else */
export function planMigrations(connection: pg.ClientConfig, directory: string): Promise<MigrationPlan> {
  return connected(connection, async (client) => {
    await client.query('BEGIN READ ONLY')
    const migrations = await readMigrations(directory)
    const done = await lookUp(client)
    const newer = newerThan(migrations, done)
    const pending = pendingOf(migrations, done)
    const open = new Set(pending.map(({ name }) => name))
    const applied = migrations.map(({ name }) => name).filter((name) => !open.has(name))
    const postgres = await client.query<{ version: number }>(
      `SELECT current_setting('server_version_num')::int AS version`,
    )
    return {
      postgres: Math.floor(postgres.rows[0]!.version / 10_000),
      applied,
      newer,
      pending: pending.map(({ name }) => name),
      plans: await plansOf(client, pending),
    }
  })
}

/** The recorded migrations, without making the table for them. */
async function lookUp(client: pg.Client): Promise<Map<string, Recorded>> {
  const { rows: facts } = await client.query<{ tables: number; columns: string[] }>(
    `SELECT (SELECT count(*)::int FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace) AS tables,
       ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass('schema_migration') AND attnum > 0) AS columns`,
  )
  const { tables, columns } = facts[0]!
  if (columns.length === 0 && tables > 0)
    throw new Error('this database has tables, but none of Hearth: name an empty one, or the one that Hearth made')
  if (columns.length === 0) return new Map()
  const breaking = columns.includes('breaking') ? 'breaking' : 'NULL::text AS breaking'
  const { rows } = await client.query<Recorded>(`SELECT name, checksum, ${breaking} FROM schema_migration`)
  return new Map(rows.map((row) => [row.name, row]))
}

/** Rows a second on a small machine with a good disk: an assumption on the safe side. */
const ROWS_PER_SECOND: Readonly<Record<Exclude<Work, 'none'>, number>> = {
  index: 300_000,
  check: 1_000_000,
  rewrite: 150_000,
  rows: 50_000,
}

async function plansOf(client: pg.Client, pending: readonly Migration[]): Promise<PlannedMigration[]> {
  const { rows } = await client.query<{ name: string; rows: number }>(
    `SELECT relname AS name, CASE WHEN reltuples < 0 THEN pg_relation_size(oid) / 150 ELSE reltuples END::float8 AS rows
     FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace`,
  )
  const rowsOf = new Map(rows.map((row) => [row.name, Number(row.rows)]))
  let made: ReadonlySet<string> = new Set()
  return pending.map(({ name, sql, breaking }) => {
    const found = stepsOf(sql, made)
    made = found.made
    const steps = found.steps.map((step) => {
      const touched = Math.round(step.tables.reduce((sum, table) => sum + (rowsOf.get(table) ?? 0), 0))
      const seconds = step.work === 'none' ? 0 : touched / ROWS_PER_SECOND[step.work]
      return { ...step, rows: touched, seconds }
    })
    return { name, breaking, steps }
  })
}

/** How migrations are applied while a backup is brought back. */
export interface RestoreMigration {
  /** Only these; all without it. */
  readonly only?: ReadonlySet<string>
}

/**
 * Applies what is pending, one transaction each, under a lock that a second process waits for.
 *
 * @param restore given by a restore alone, which may work on half a database
 */
export function migrate(connection: pg.ClientConfig, directory: string, restore?: RestoreMigration): Promise<Migrated> {
  return connected(connection, (client) => migrateOver(client, directory, restore))
}

/** As `migrate`, over a connection that holds the lock until it ends. */
export async function migrateOver(client: pg.Client, directory: string, restore?: RestoreMigration): Promise<Migrated> {
  await client.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK])
  const [migrations, done] = [await readMigrations(directory), await recorded(client)]
  if (restore) done.delete(RESTORING)
  const newer = newerThan(migrations, done)
  const pending = pendingOf(migrations, done).filter(({ name }) => restore?.only?.has(name) ?? true)
  for (const { name, sql, checksum, breaking = null } of pending) {
    await client.query('BEGIN')
    try {
      await client.query(sql)
      const row = [name, checksum, breaking]
      await client.query('INSERT INTO schema_migration (name, checksum, breaking) VALUES ($1, $2, $3)', row)
      await client.query('COMMIT')
    } catch (error) {
      await client.query('ROLLBACK')
      throw new Error(`migration ${name} failed and was rolled back: ${(error as Error).message}`, { cause: error })
    }
  }
  return { applied: pending.map(({ name }) => name), newer }
}
