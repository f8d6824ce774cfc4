import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openPointInTime, type PointInTime } from '../../src/cli/backup/point-in-time.ts'
import type { Host } from '../../src/cli/command.ts'
import { ConfigError, loadConfig } from '../../src/config/load.ts'
import { backupId } from '../../src/core/backup/manifest.ts'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { claimPlace } from '../../src/domain/backup/backup-files.ts'
import { createDirectoryBackups } from '../../src/domain/backup/directory-backups.ts'
import { UNHURRIED } from '../../src/domain/backup/pace.ts'
import { PLAIN } from '../../src/domain/backup/seal.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts'
import { ARCHIVE_SETTINGS, walOutOf } from '../../src/store/embedded/wal-archive.ts'

const folder = mkdtempSync(join(tmpdir(), 'hearth-log-'))
const place = join(folder, 'backups')
const directory = join(folder, 'data/postgres')
const store = createDirectoryBackups(place)
const signingKey = signingKeyFromSeed('ed25519:1', Buffer.alloc(32, 1))
const values = {
  server_name: 'log.test',
  data_dir: join(folder, 'data'),
  backup: { place, point_in_time: true },
}
const { config } = loadConfig({ values, directory: folder })

let postgres: EmbeddedPostgres | undefined
let stopped = new AbortController()
let backups = 0

async function start(settings: Readonly<Record<string, string>> = ARCHIVE_SETTINGS): Promise<void> {
  await postgres?.stop()
  const log = pino({ level: 'silent' })
  postgres = await startEmbeddedPostgres({ directory, uid: process.getuid?.() ?? 0, log, settings })
}

async function inTime(): Promise<PointInTime> {
  const host = { version: '1', stopSignal: () => stopped.signal } as unknown as Host
  const { connection } = postgres!
  const made = { host, config, store, seal: PLAIN, signingKey, connection, progress: () => {} }
  return (await openPointInTime(made))!
}

const takeLog = async () => (await inTime()).takeLog()
const copyFiles = async () => (await inTime()).copyFiles(backupId(Date.now() + ++backups), UNHURRIED)

const WAIT = { timeout: 60_000, interval: 50 }

/** Fills a piece of the log and begins another. */
async function write(): Promise<void> {
  const client = new pg.Client(postgres!.connection)
  await client.connect()
  await client.query(`SELECT pg_logical_emit_message(true, 'a', 'b')`)
  await client.query('SELECT pg_switch_wal()')
  await client.end()
}

beforeAll(async () => {
  mkdirSync(join(folder, 'data'))
  await claimPlace(store, 'log.test', 1)
  await start()
}, 300_000)
afterEach(() => {
  stopped = new AbortController()
})
afterAll(async () => {
  await postgres?.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('the log leads on once there is a copy of the files, and not before', async () => {
  expect(await takeLog()).toContain('no copy of the files')
  await copyFiles()
  expect(await takeLog()).toBeUndefined()
  await write()
  expect(await takeLog()).toBeUndefined()
}, 300_000)

test('what was written while nothing was put aside is a hole, until the next copy', async () => {
  await start({})
  for (let count = 0; count < 2; count++) await write()
  await start()
  expect(await takeLog()).toMatch(/the piece at [0-9A-F]{16} of the log is not at the place/)
  expect(await takeLog()).toMatch(/is not at the place/)
  await copyFiles()
  expect(await takeLog()).toBeUndefined()
}, 300_000)

test('what was dropped stays known if the copy that would have mended it fails', async () => {
  const out = walOutOf(join(directory, 'cluster'))
  mkdirSync(out, { recursive: true, mode: 0o777 })
  for (let count = 0; count < 130; count++) writeFileSync(join(out, `waiting-${count}`), '')
  await write()
  const isPiece = (name: string) => /^[0-9A-F]{24}$/.test(name)
  await expect.poll(() => readdirSync(out), WAIT).toContain('gap')
  // The piece after the mark: it counts as dropped too.
  await expect.poll(() => readdirSync(out).filter(isPiece), WAIT).not.toEqual([])
  for (const name of readdirSync(out).filter(isPiece)) rmSync(join(out, name))
  expect(await takeLog()).toContain('could not be put aside')
  stopped.abort()
  await expect(copyFiles()).rejects.toThrow()
  stopped = new AbortController()
  expect(await takeLog()).toMatch(/is not at the place/)
  await copyFiles()
  expect(await takeLog()).toBeUndefined()
}, 300_000)

test('what waits goes away with its cluster', async () => {
  await write()
  await expect.poll(() => readdirSync(walOutOf(join(directory, 'cluster'))), WAIT).not.toEqual([])
  await postgres!.stop()
  postgres = undefined
  renameSync(join(directory, 'cluster'), join(folder, 'away'))
  const [old] = readdirSync(join(place, 'log'))
  await start()
  expect(await takeLog()).toContain('no copy of the files of this Postgres')
  const systems = readdirSync(join(place, 'log'))
  expect(systems).toHaveLength(2)
  const own = systems.find((name) => name !== old)!
  // Its own first pieces and none that the other had left.
  await copyFiles()
  expect(readdirSync(join(place, 'log'))).toContain(own)
  expect(await takeLog()).toBeUndefined()
  expect(readdirSync(walOutOf(join(folder, 'away')))).not.toEqual([])
}, 300_000)

test('it needs an interval at which the log is taken', () => {
  const without = { ...values, backup: { ...values.backup, journal_minutes: 0 } }
  expect(() => loadConfig({ values: without, directory: folder })).toThrow(ConfigError)
  expect(() => loadConfig({ values: without, directory: folder })).toThrow('needs a backup.journal_minutes')
})
