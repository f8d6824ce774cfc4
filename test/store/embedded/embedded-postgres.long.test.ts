import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readdir, readFile, rename, rm, stat, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { childEnvironment, chooseAccount, finished } from '../../../src/store/embedded/account.ts'
import { findBinaries } from '../../../src/store/embedded/binaries.ts'
import { giveTo, makeDirectories } from '../../../src/store/embedded/directories.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/store/embedded/embedded-postgres.ts'
import { launch } from '../../../src/store/embedded/postmaster.ts'
import { isAlive } from '../../support/child-server.ts'
import { waitUntil } from '../../support/wait.ts'

type Connection = EmbeddedPostgres['connection']

const uid = process.getuid?.() ?? 0
const log = pino({ level: 'silent' })
const OWNER = fileURLToPath(new URL('../../support/embedded-owner.ts', import.meta.url))

let base: string
let directory: string
let running: EmbeddedPostgres[]

/** A cluster made once, for the tests that do not care how it was made. */
let made: string

beforeAll(async () => {
  made = await mkdtemp(join(tmpdir(), 'hearth-pg-'))
  await (await startEmbeddedPostgres({ directory: made, uid, log })).stop()
})

afterAll(() => rm(made, { recursive: true, force: true }))

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'hearth-pg-'))
  directory = join(base, 'postgres')
  await cp(made, directory, { recursive: true })
  running = []
})

afterEach(async () => {
  await Promise.all(running.map((postgres) => postgres.stop()))
  await rm(base, { recursive: true, force: true })
})

async function start(where = directory): Promise<EmbeddedPostgres> {
  const postgres = await startEmbeddedPostgres({ directory: where, uid, log })
  running.push(postgres)
  return postgres
}

async function query(connection: Connection, text: string, values: unknown[] = []): Promise<pg.QueryResultRow[]> {
  const client = new pg.Client(connection)
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query(text, values)).rows
  } finally {
    await client.end()
  }
}

/** Inserts row after row until the database goes away; gives how many were acknowledged. */
async function insertUntilGone(connection: Connection, atRow: number, strike: () => void): Promise<number> {
  const client = new pg.Client(connection)
  client.on('error', () => undefined)
  await client.connect()
  await client.query('CREATE TABLE entry (n int PRIMARY KEY)')
  let acknowledged = 0
  try {
    while (true) {
      await client.query('INSERT INTO entry VALUES ($1)', [acknowledged])
      acknowledged += 1
      if (acknowledged === atRow) strike()
    }
  } catch {
    return acknowledged
  }
}

async function entries(connection: Connection): Promise<number[]> {
  return (await query(connection, 'SELECT n FROM entry ORDER BY n')).map(({ n }) => n)
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index)

interface Owner {
  readonly child: ChildProcess
  readonly postmaster: number
  readonly connection: Connection
}

async function startOwner(): Promise<Owner> {
  const child = spawn(process.execPath, ['--import', 'tsx', OWNER, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(child.stdout!, 'data')
  return { child, ...JSON.parse(String(line)) }
}

async function gone(pid: number): Promise<void> {
  await waitUntil(`the end of process ${pid}`, () => !isAlive(pid))
}

test('the first start makes a durable, closed Postgres; a later one finds everything there', async () => {
  await rm(directory, { recursive: true })
  const first = await start()
  const settings = ['fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses', 'server_encoding']
  const rows = await query(first.connection, 'SELECT name, setting FROM pg_settings WHERE name = ANY($1)', [settings])
  expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual({
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    listen_addresses: '',
    server_encoding: 'UTF8',
  })
  const [database] = await query(
    first.connection,
    'SELECT datcollate FROM pg_database WHERE datname = current_database()',
  )
  expect(database?.datcollate).toBe('C')
  expect((await stat(directory)).mode & 0o777).toBe(0o700)
  expect((await stat(first.connection.host)).mode & 0o777).toBe(0o700)
  await query(first.connection, 'CREATE TABLE kept AS SELECT 1 AS n')
  await first.stop()
  expect(isAlive(first.pid())).toBe(false)
  const second = await start()
  expect(await query(second.connection, 'SELECT n FROM kept')).toEqual([{ n: 1 }])
})

test.skipIf(uid !== 0)('root hands it to an account without rights', async () => {
  const postgres = await start()
  expect((await stat(`/proc/${postgres.pid()}`)).uid).not.toBe(0)
})

test('a second server on the same directory is refused, and harms nothing', async () => {
  const first = await start()
  await expect(startEmbeddedPostgres({ directory, uid, log })).rejects.toThrow(/another Hearth is running/)
  expect(await query(first.connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
})

test('when its owner is killed it ends by itself; the next start has every acknowledged row', async () => {
  const { child, postmaster, connection } = await startOwner()
  const acknowledged = await insertUntilGone(connection, 200, () => child.kill('SIGKILL'))
  expect(acknowledged).toBeGreaterThanOrEqual(200)
  await gone(postmaster)
  const again = await start()
  const found = await entries(again.connection)
  expect(found.length).toBeGreaterThanOrEqual(acknowledged)
  expect(found).toEqual(upTo(found.length))
})

test('a start right after the kill does not wait for help', async () => {
  const { child, connection } = await startOwner()
  await query(connection, 'CREATE TABLE kept AS SELECT 1 AS n')
  child.kill('SIGKILL')
  await once(child, 'exit')
  const again = await start()
  expect(await query(again.connection, 'SELECT n FROM kept')).toEqual([{ n: 1 }])
})

test('when Postgres itself is killed it is started again with every acknowledged row', async () => {
  const postgres = await start()
  const killed = postgres.pid()
  const acknowledged = await insertUntilGone(postgres.connection, 200, () => process.kill(killed, 'SIGKILL'))
  const found = await waitUntil('Postgres to be back', () => entries(postgres.connection).catch(() => undefined))
  expect(found.length).toBeGreaterThanOrEqual(acknowledged)
  expect(found).toEqual(upTo(found.length))
  expect(postgres.pid()).not.toBe(killed)
})

test('when owner and Postgres are killed, a process id that another program has by now is no obstacle', async () => {
  const { child, postmaster, connection } = await startOwner()
  await query(connection, 'CREATE TABLE kept AS SELECT 1 AS n')
  child.kill('SIGSTOP')
  process.kill(postmaster, 'SIGKILL')
  child.kill('SIGKILL')
  await gone(postmaster)
  const pidFile = join(directory, 'cluster/postmaster.pid')
  const content = await readFile(pidFile, 'utf8')
  const stranger = spawn('sleep', ['600'])
  try {
    await writeFile(pidFile, content.replace(/^\d+/, String(stranger.pid)))
    const again = await start()
    expect(await query(again.connection, 'SELECT n FROM kept')).toEqual([{ n: 1 }])
    expect(isAlive(stranger.pid!)).toBe(true)
  } finally {
    stranger.kill()
  }
})

test('a Postgres that an earlier server left running is stopped, not shared', async () => {
  const directories = await makeDirectories(directory)
  const binaries = await findBinaries(directories.lib)
  const account = await chooseAccount(uid, binaries, base)
  await giveTo(account.owner, directories, uid)
  const left = launch({ account, binaries, directories, settings: {}, log })
  await waitUntil('the one left', () =>
    readFile(join(directories.cluster, 'postmaster.pid')).then(
      () => true,
      () => false,
    ),
  )
  const own = await start()
  expect(left.hasExited()).toBe(true)
  expect(own.pid()).not.toBe(left.pid)
})

test('a kill in the middle of making the cluster leaves nothing to repair', async () => {
  await rm(directory, { recursive: true })
  const { cluster } = await makeDirectories(directory)
  await cp(dirname(OWNER), `${cluster}.new`, { recursive: true })
  const postgres = await start()
  expect(await query(postgres.connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
  expect(await readdir(directory)).not.toContain('cluster.new')
})

test('a cluster of another major version stops the start with advice', async () => {
  await writeFile(join(directory, 'cluster/PG_VERSION'), '13\n')
  await expect(startEmbeddedPostgres({ directory, uid, log })).rejects.toThrow(/was made by Postgres 13/)
})

test('what will not pass by itself stops the start with the words of Postgres', async () => {
  const settings = { shared_buffers: 'plenty' }
  await expect(startEmbeddedPostgres({ directory, uid, log, settings })).rejects.toThrow(/invalid value.*"plenty"/)
})

test('a long path does not matter to the socket', async () => {
  const postgres = await start(join(base, 'a'.repeat(100), 'postgres'))
  expect(postgres.connection.host.length).toBeLessThan(90)
  expect((await stat(postgres.connection.host)).mode & 0o777).toBe(0o700)
  expect(await query(postgres.connection, 'SELECT 1 AS n')).toEqual([{ n: 1 }])
  await rm(postgres.connection.host, { recursive: true, force: true })
})

test('a package whose links were not made at installation works all the same', async () => {
  const installed = await findBinaries(join(base, 'lib'))
  const root = join(base, 'package')
  await cp(dirname(dirname(dirname(installed.postgres))), root, { recursive: true, verbatimSymlinks: true })
  const libraries = join(root, 'native/lib')
  for (const entry of await readdir(libraries, { withFileTypes: true })) {
    if (entry.isSymbolicLink()) await unlink(join(libraries, entry.name))
  }
  const binaries = await findBinaries(join(base, 'lib'), root)
  const child = spawn(binaries.postgres, ['--version'], {
    env: childEnvironment(binaries),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  expect(await finished(child)).toEqual({ code: 0, stderr: '' })
})

test('a copy for a later Postgres that was complete when its server was killed gets its name at the next start', async () => {
  const postgres = await start()
  await query(postgres.connection, 'CREATE TABLE kept AS SELECT 1 AS one')
  await postgres.stop()
  await rename(join(directory, 'cluster'), join(directory, 'cluster.next'))
  await writeFile(join(directory, 'cluster.next/hearth-complete'), '')
  expect(await query((await start()).connection, 'SELECT one FROM kept')).toEqual([{ one: 1 }])
})
