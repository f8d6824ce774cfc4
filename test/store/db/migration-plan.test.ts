import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { planMigrations, readMigrations } from '../../../src/store/db/migrate.ts'
import { stepsOf } from '../../../src/store/db/migration-steps.ts'
import { createTestDatabase, MIGRATIONS, type TestDatabase } from '../../support/database.ts'
import { runProgramHere } from '../../support/run-hearth.ts'

let directory: string
let databases: TestDatabase[]
beforeEach(async () => {
  databases = []
  directory = await mkdtemp(join(tmpdir(), 'hearth-plan-'))
  await cp(MIGRATIONS, directory, { recursive: true })
})
afterEach(async () => {
  for (const database of databases) await database.drop()
  await rm(directory, { recursive: true })
})

async function opened(isEmpty = false): Promise<TestDatabase> {
  const database = await createTestDatabase(isEmpty)
  databases.push(database)
  return database
}

const CASES: [string, string, string[]][] = [
  ['CREATE INDEX later ON event (sender_nid);', 'index', ['event']],
  ['CREATE TABLE later (n int); CREATE INDEX ON later (n); INSERT INTO later VALUES (1);', 'none', []],
  ['ALTER TABLE event ADD COLUMN later bigint;', 'none', []],
  ['ALTER TABLE event ADD COLUMN later boolean NOT NULL DEFAULT false;', 'none', []],
  ['ALTER TABLE event ADD COLUMN later uuid DEFAULT gen_random_uuid();', 'rewrite', ['event']],
  ['ALTER TABLE event ALTER COLUMN type TYPE varchar;', 'rewrite', ['event']],
  ['ALTER TABLE event ADD CONSTRAINT later CHECK (notifiable >= 0);', 'check', ['event']],
  ["UPDATE room SET name = 'a;b -- c' WHERE name = 'x';", 'rows', ['room']],
  ['-- UPDATE room;\n/* DELETE FROM room; */ DROP TABLE room;', 'none', []],
  ['CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $x$ UPDATE room SET a = 1; SELECT 1 $x$;', 'none', []],
]

test.each(CASES)('A10: what a statement goes through: %s', (sql, work, tables) => {
  const { steps } = stepsOf(sql)
  expect(steps.find((step) => step.work !== 'none') ?? { work: 'none', tables: [] }).toMatchObject({ work, tables })
})

test('A10: each statement of the released migrations is read', async () => {
  const migrations = await readMigrations(MIGRATIONS)
  const known = new Set<string>()
  let made: ReadonlySet<string> = new Set()
  for (const { name, sql } of migrations) {
    const found = stepsOf(sql, made)
    expect(found.steps.length, name).toBeGreaterThan(0)
    for (const { text, tables } of found.steps) {
      expect(text, name).toMatch(/^[A-Z]/)
      // All tables are made by migrations, so that in an empty database nothing takes time.
      expect(
        tables.filter((table) => found.made.has(table)),
        name,
      ).toEqual([])
    }
    for (const table of found.made) known.add(table)
    made = found.made
  }
  expect(known.has('event')).toBe(true)
})

test('A10: the plan counts rows, and says how long and what the release before thinks of it', async () => {
  const { db, connection, url } = await opened()
  await db.tx((tx) =>
    tx.query(
      `INSERT INTO federation_txn (txn_hash, answer, received_at)
       SELECT sha256(n::text::bytea), 'answer', n FROM generate_series(1, 40000) AS n`,
    ),
  )
  await db.tx((tx) => tx.query('ANALYZE federation_txn'))
  await writeFile(
    join(directory, '9000_later.sql'),
    '--! breaking: it is another thing\nCREATE INDEX later ON federation_txn (answer);\nUPDATE federation_txn SET answer = 1;',
  )
  const { plans, pending } = await planMigrations(connection, directory)
  expect(pending).toEqual(['9000_later.sql'])
  expect(plans[0]).toMatchObject({ breaking: 'it is another thing' })
  expect(plans[0]!.steps.map(({ work, rows }) => [work, rows])).toEqual([
    ['index', 40_000],
    ['rows', 40_000],
  ])
  for (const { seconds } of plans[0]!.steps) expect(seconds).toBeGreaterThan(0.05)
  const env = { HEARTH__SERVER_NAME: 'localhost', HEARTH__DATABASE__URL: url, HEARTH__DATA_DIR: directory }
  const shown = await runProgramHere(['migrate', '--plan'], { directory, env })
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringMatching(/migrated up to \d{4}_.*\nTo do: nothing/) })
})

test('A10: a plan writes nothing: not in an empty database, not in one of something else, and makes none', async () => {
  const { db, connection, url } = await opened(true)
  const { applied, pending } = await planMigrations(connection, MIGRATIONS)
  expect([applied, pending.length]).toEqual([[], (await readMigrations(MIGRATIONS)).length])
  const tables = async () =>
    (await db.query<{ count: number }>("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"))[0]!
  expect(await tables()).toEqual({ count: 0 })
  const env = { HEARTH__SERVER_NAME: 'localhost', HEARTH__DATA_DIR: join(directory, 'data') }
  const shown = await runProgramHere(['migrate', '--plan'], {
    directory,
    env: { ...env, HEARTH__DATABASE__URL: url },
  })
  expect(shown.stdout).toMatch(/empty\.\nTo do: \d+ migrations, less than a second[\s\S]*0001_accounts\.sql/)
  await db.tx((tx) => tx.query('CREATE TABLE letters (text text)'))
  await expect(planMigrations(connection, MIGRATIONS)).rejects.toThrow('this database has tables, but none of Hearth')
  expect(await tables()).toEqual({ count: 1 })
  const none = await runProgramHere(['migrate', '--plan'], { directory, env })
  expect(none).toMatchObject({ code: 0, stdout: expect.stringContaining('There is no database yet') })
})
