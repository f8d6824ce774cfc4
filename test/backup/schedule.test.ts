import { pino } from 'pino'
import { afterEach, expect, test } from 'vitest'
import { startBackupSchedule, startJournalSchedule } from '../../src/cli/serve/backup-schedule.ts'
import { recordBackup } from '../../src/store/backup/backup-runs.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { waitUntil } from '../support/wait.ts'

const HOUR_MS = 3_600_000
let database: TestDatabase
afterEach(() => database.drop())

async function scheduled(at: number, code = 0) {
  database = await createTestDatabase()
  const record = (ended_at: number) =>
    database.db.tx((tx) =>
      recordBackup(tx, { backup_id: String(ended_at), place: 'p', begun_at: 0, ended_at, bytes: 1 }),
    )
  const clock = { at, looked: 0, runs: 0 }
  const schedule = startBackupSchedule({
    connection: database.connection,
    everyMs: 24 * HOUR_MS,
    log: pino({ level: 'silent' }),
    now() {
      clock.looked++
      return clock.at
    },
    async run() {
      clock.runs++
      if (code === 0) await record(clock.at)
      return { code, output: '' }
    },
    lookEveryMs: 1,
  })
  const looks = async (times: number) => {
    const from = clock.looked
    await waitUntil('some looks', () => clock.looked > from + 4 * times)
  }
  return { clock, looks, stop: schedule.stop }
}

test('a backup is made when none was, and again when the last one is old enough, also after a clock was set back', async () => {
  const { clock, looks, stop } = await scheduled(1_000 * HOUR_MS)
  await waitUntil('the first', () => clock.runs === 1)
  clock.at += 23 * HOUR_MS
  await looks(5)
  expect(clock.runs).toBe(1)
  clock.at += HOUR_MS
  await waitUntil('the second', () => clock.runs === 2)
  clock.at += 24 * HOUR_MS
  await waitUntil('the third', () => clock.runs === 3)
  clock.at = 10 * HOUR_MS
  await waitUntil('the fourth', () => clock.runs === 4)
  await looks(5)
  expect(clock.runs).toBe(4)
  await stop()
})

test('a backup that failed is tried again after an hour', async () => {
  const { clock, looks, stop } = await scheduled(1_000 * HOUR_MS, 1)
  await waitUntil('the first', () => clock.runs === 1)
  await looks(5)
  expect(clock.runs).toBe(1)
  clock.at += HOUR_MS
  await waitUntil('the second', () => clock.runs === 2)
  await stop()
})

test('what ended is written beside the backups when something ended, and again after a failure', async () => {
  database = await createTestDatabase()
  const note = () =>
    database.db.tx((tx) => tx.query(`INSERT INTO undone (at, kind, what) VALUES (1, 'session', '[1,1]')`))
  let [runs, code, looked] = [0, 0, 0]
  const schedule = startJournalSchedule({
    connection: database.connection,
    everyMs: 1,
    isAlways: false,
    log: pino({ level: 'silent' }),
    now: Date.now,
    async run() {
      runs++
      return { code, output: '' }
    },
    onLook: () => void looked++,
  })
  const looks = async (times: number) => {
    const from = looked
    await waitUntil('some looks', () => looked > from + times)
  }
  await looks(5)
  expect(runs).toBe(0)
  await note()
  await waitUntil('the first', () => runs === 1)
  await looks(5)
  expect(runs).toBe(1)
  code = 1
  await note()
  await waitUntil('attempts', () => runs > 3)
  code = 0
  await schedule.stop()
})
