import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'

// Table: schema_migration

export interface Migration {
  readonly number: number
  readonly name: string
  readonly sql: string
  /** sha256 of the file, hex. A recorded migration whose file changed stops the start. */
  readonly checksum: string
}

export interface MigrationPlan {
  readonly applied: readonly string[]
  readonly pending: readonly string[]
}

/** One lock for every process that migrates this database; any constant does. */
const LOCK_KEY = 0x4865_6172

const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/

/** The migrations of a folder in their order. Throws on a name that does not fit and on a number used twice. */
export async function readMigrations(directory: string): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort()
  const migrations = await Promise.all(
    names.map(async (name) => {
      const number = Number(FILE_NAME.exec(name)?.[1])
      if (!number) throw new Error(`${join(directory, name)}: a migration is named NNNN_words.sql`)
      const sql = await readFile(join(directory, name), 'utf8')
      return { number, name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
    }),
  )
  const twice = migrations.find((migration, index) => migrations[index - 1]?.number === migration.number)
  if (twice) throw new Error(`${twice.name}: its number is used by another migration`)
  return migrations
}

async function recorded(client: pg.Client): Promise<Map<string, string>> {
  await client.query(`CREATE TABLE IF NOT EXISTS schema_migration (
    name text COLLATE "C" PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`)
  const { rows } = await client.query<{ name: string; checksum: string }>('SELECT name, checksum FROM schema_migration')
  return new Map(rows.map((row) => [row.name, row.checksum]))
}

function pendingOf(migrations: readonly Migration[], done: ReadonlyMap<string, string>): Migration[] {
  const known = new Set(migrations.map((migration) => migration.name))
  const newer = [...done.keys()].filter((name) => !known.has(name) && name > (migrations.at(-1)?.name ?? ''))
  if (newer.length > 0) {
    throw new Error(
      `The database was migrated by a newer Hearth (${newer.join(', ')}). Start that version, or restore a backup.`,
    )
  }
  for (const { name, checksum } of migrations) {
    const applied = done.get(name)
    if (applied !== undefined && applied !== checksum) {
      throw new Error(`${name} was changed after it had been applied to this database. Restore the file as released.`)
    }
  }
  return migrations.filter(({ name }) => !done.has(name))
}

async function connected<T>(connection: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** What `migrate` would do. */
export function planMigrations(connection: pg.ClientConfig, directory: string): Promise<MigrationPlan> {
  return connected(connection, async (client) => {
    const migrations = await readMigrations(directory)
    const pending = pendingOf(migrations, await recorded(client)).map(({ name }) => name)
    const open = new Set(pending)
    return { pending, applied: migrations.map(({ name }) => name).filter((name) => !open.has(name)) }
  })
}

/** Applies what is pending, one transaction each, under a lock that a second process waits for. Gives the names applied. */
export function migrate(connection: pg.ClientConfig, directory: string): Promise<string[]> {
  return connected(connection, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [LOCK_KEY])
    const pending = pendingOf(await readMigrations(directory), await recorded(client))
    for (const { name, sql, checksum } of pending) {
      await client.query('BEGIN')
      try {
        await client.query(sql)
        await client.query('INSERT INTO schema_migration (name, checksum) VALUES ($1, $2)', [name, checksum])
        await client.query('COMMIT')
      } catch (error) {
        await client.query('ROLLBACK')
        throw new Error(`migration ${name} failed and was rolled back: ${(error as Error).message}`, { cause: error })
      }
    }
    return pending.map(({ name }) => name)
  })
}
