import { createHash, randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { inject } from 'vitest'
import { type Database, openDatabase } from '../../src/store/db/db.ts'
import { migrate, readMigrations } from '../../src/store/db/migrate.ts'

export const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url))

export interface TestDatabase {
  /** For `openDatabase` and for a `pg.Client` of the test's own. */
  readonly connection: {
    readonly host: string
    readonly port: number
    readonly user: string
    readonly database: string
  }
  /** The same as a connection string. */
  readonly url: string
  readonly db: Database
  /** Closes `db` and drops the database, whoever is still connected. */
  drop(): Promise<void>
}

const TEMPLATE_LOCK = 0x7e57

/** One connection for this process, until it ends: it takes one statement after another, and keeps the lock that it took. */
let administrator: pg.Pool | undefined
let template: Promise<string> | undefined

/**
 * A freshly migrated database of its own, on the Postgres of this run.
 * @param isEmpty not migrated either
 */
export async function createTestDatabase(isEmpty = false): Promise<TestDatabase> {
  const server = inject('postgres')
  const name = `test_${randomBytes(8).toString('hex')}`
  administrator ??= new pg.Pool({
    ...server,
    database: 'postgres',
    max: 1,
    idleTimeoutMillis: 0,
    allowExitOnIdle: true,
  })
  const client = administrator
  template ??= ensureTemplate(client)
  // Copied as files: far cheaper than page by page through the log.
  await client.query(`CREATE DATABASE ${name} TEMPLATE ${isEmpty ? 'template0' : await template} STRATEGY FILE_COPY`)
  const connection = { ...server, database: name }
  const db = openDatabase({ connection, poolSize: 4 })
  return {
    connection,
    url: `postgres://${server.user}@${encodeURIComponent(server.host)}:${server.port}/${name}`,
    db,
    async drop() {
      await db.close()
      await client.query(`DROP DATABASE ${name} WITH (FORCE)`)
    },
  }
}

/** Migrates once per set of migration files, whichever test file comes first. */
async function ensureTemplate(client: pg.Pool): Promise<string> {
  const checksums = (await readMigrations(MIGRATIONS)).map(({ checksum }) => checksum)
  const name = `template_${createHash('sha256').update(checksums.join()).digest('hex').slice(0, 16)}`
  await client.query('SELECT pg_advisory_lock($1)', [TEMPLATE_LOCK])
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name])
    if (rowCount === 0) await makeTemplate(client, name)
    return name
  } finally {
    await client.query('SELECT pg_advisory_unlock($1)', [TEMPLATE_LOCK])
  }
}

async function makeTemplate(client: pg.Pool, name: string): Promise<void> {
  const draft = `draft_${randomBytes(8).toString('hex')}`
  await client.query(`CREATE DATABASE ${draft}`)
  await migrate({ ...inject('postgres'), database: draft }, MIGRATIONS)
  await client.query(`ALTER DATABASE ${draft} RENAME TO ${name}`)
}
