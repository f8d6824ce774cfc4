import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { startEmbeddedPostgres } from '../../../src/store/embedded/embedded-postgres.ts'
import { roomWanted } from '../../../src/store/embedded/major-upgrade.ts'

const folder = mkdtempSync(join(tmpdir(), 'hearth-former-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const start = (directory: string) =>
  startEmbeddedPostgres({ directory, uid: process.getuid?.() ?? 0, log: pino({ level: 'silent' }) })

test('a database that is missing beside the one of before an upgrade is not replaced by an empty one', async () => {
  const directory = join(folder, 'postgres')
  const former = join(directory, 'cluster.pg17')
  mkdirSync(former, { recursive: true })
  writeFileSync(join(former, 'PG_VERSION'), '17\n')
  await expect(start(directory)).rejects.toThrow(
    `is missing, and beside it is ${former}, the database as it was before it was copied for a later Postgres. To use that one, give it the name back: mv ${former} ${join(directory, 'cluster')}`,
  )
  expect(readdirSync(directory)).not.toContain('cluster')
  // Out of the way, an empty one is what is wished.
  renameSync(former, join(folder, 'elsewhere'))
  const made = await start(directory)
  await made.stop()
  expect(readdirSync(directory)).toContain('cluster')
}, 60_000)

test('the room for an upgrade is that of the tables and of the log that all of it goes through', () => {
  const gibibyte = 1024 ** 3
  expect(roomWanted(10 * gibibyte)).toBeGreaterThan(10 * gibibyte + 4 * gibibyte)
  // The log of a small one is small too, and does not grow without end with a large one.
  expect(roomWanted(gibibyte / 10)).toBeLessThan(0.5 * gibibyte)
  expect(roomWanted(100 * gibibyte) - roomWanted(90 * gibibyte)).toBeLessThan(14 * gibibyte)
})
