import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase(true)
})
afterAll(() => database.drop())

it('what is written behind a slow write has as much time as that one', async () => {
  const writing = database.db.dedicated()
  const slow = () => writing.query('SELECT pg_sleep(5) IS NULL AS slow')
  expect(await Promise.all([slow(), slow()])).toEqual([[{ slow: false }], [{ slow: false }]])
})

it('one that is not answered in time still ends the connection for those behind it', async () => {
  const writing = database.db.dedicated()
  const begun = performance.now()
  const stuck = [writing.query('SELECT pg_sleep(30)'), writing.query('SELECT 1 AS one')]
  for (const { status } of await Promise.allSettled(stuck)) expect(status).toBe('rejected')
  expect(performance.now() - begun).toBeLessThan(12_000)
  expect(await writing.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
})
