import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { HASHES_FILE, hashesOf } from '../../../scripts/migration-hashes.ts'
import { migrate, planMigrations, readMigrations } from '../../../src/store/db/migrate.ts'
import { createTestDatabase, MIGRATIONS, type TestDatabase } from '../../support/database.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-migrations-'))
  await cp(MIGRATIONS, directory, { recursive: true })
})
afterEach(() => rm(directory, { recursive: true }))

const add = (name: string, sql: string) => writeFile(join(directory, name), sql)
const read = (name: string) => readFile(join(directory, name), 'utf8')

test('A10: every migration is as the committed list of hashes has it, and every one is listed', async () => {
  const listed = JSON.parse(await read(HASHES_FILE)) as Record<string, string>
  const found = Object.fromEntries((await readMigrations(MIGRATIONS)).map(({ name, checksum }) => [name, checksum]))
  expect(found).toEqual(listed)
})

test('A10: a new migration adds a line to the list and changes none', async () => {
  const before = await read(HASHES_FILE)
  await add('9000_later.sql', 'SELECT 1;')
  const after = await hashesOf(directory)
  expect(after.startsWith(before.trimEnd().replace(/\n}$/, ''))).toBe(true)
  expect(after.split('\n').length).toBe(before.split('\n').length + 1)
})

test('A10: a migration that was changed or removed ends the check', async () => {
  const [first] = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort()
  await add(first!, `${await read(first!)}\n-- better`)
  await expect(hashesOf(directory)).rejects.toThrow(`${first} was changed although databases have it`)
  await rm(join(directory, first!))
  await expect(hashesOf(directory)).rejects.toThrow(`${first} is gone although databases have it`)
})

test('A10: a breaking migration says why', async () => {
  await add('9000_later.sql', '--! breaking\nSELECT 1;')
  await expect(readMigrations(directory)).rejects.toThrow('9000_later.sql: `--! breaking` is followed by the reason')
})

async function withDatabase(
  work: (database: TestDatabase, connection: pg.ClientConfig) => Promise<void>,
): Promise<void> {
  const database = await createTestDatabase()
  try {
    await work(database, database.connection)
  } finally {
    await database.drop()
  }
}

test('A10: this release runs on a database that a newer one migrated without breaking it', () =>
  withDatabase(async (_database, connection) => {
    await add('9000_later.sql', 'CREATE TABLE later (n int);')
    expect(await migrate(connection, directory)).toMatchObject({ applied: ['9000_later.sql'] })
    expect(await migrate(connection, MIGRATIONS)).toEqual({ applied: [], newer: ['9000_later.sql'] })
    expect(await planMigrations(connection, MIGRATIONS)).toMatchObject({ pending: [] })
  }))

test('A10: this release refuses a database that a newer one broke for it, and says why', () =>
  withDatabase(async (_database, connection) => {
    await add('9000_later.sql', '-- Old things go.\n--! breaking: rooms have no heads any more\nSELECT 1;')
    await migrate(connection, directory)
    const refusal =
      /newer Hearth.*9000_later\.sql: rooms have no heads any more.*Start that version, or restore a backup/
    await expect(migrate(connection, MIGRATIONS)).rejects.toThrow(refusal)
    await expect(planMigrations(connection, MIGRATIONS)).rejects.toThrow(refusal)
  }))
