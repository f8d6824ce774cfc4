import { pino } from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startJanitor } from '../../src/workers/janitor.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const HOUR = 3_600_000

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

it('forgets transaction ids after a day, however many, and none before', async () => {
  const { db } = database
  const now = 1_000 * HOUR
  const use = (from: number, to: number, at: number) =>
    db.tx((tx) =>
      tx.query(
        `INSERT INTO client_txn (token_nid, txn_hash, event_nid, created_ts)
         SELECT 1, 't' || n, n, $3::bigint FROM generate_series($1::int, $2::int) n`,
        [from, to, at],
      ),
    )
  await use(1, 5_000, now - 40 * HOUR)
  await use(5_001, 5_100, now - 24 * HOUR)
  await use(5_101, 5_110, now)
  const janitor = startJanitor({ db, clock: { now: () => now }, log: pino({ level: 'silent' }) })
  expect(await janitor.tidy()).toBe(5_000)
  expect(await janitor.tidy()).toBe(0)
  const [left] = await db.query('SELECT count(*) AS count, min(event_nid) AS first FROM client_txn')
  expect(left).toEqual({ count: 110, first: 5_001 })
  await janitor.close()
})
