import { afterAll, beforeAll, expect, it } from 'vitest'
import { openDatabase } from '../../../src/store/db/db.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

it('a process that may not write any more commits nothing asynchronously either', async () => {
  let mayWrite = true
  const db = openDatabase({ connection: database.connection, poolSize: 1, mayWrite: () => mayWrite })
  try {
    const asynchronous = db.asyncCommits()
    const write = (room: string) =>
      asynchronous.query("INSERT INTO blocked_room (room_id, blocked_by, blocked_at) VALUES ($1, '@a:b', 1)", [room])
    await write('!before:b')
    mayWrite = false
    await expect(write('!after:b')).rejects.toMatchObject({ status: 503 })
    expect(await db.query('SELECT room_id FROM blocked_room')).toEqual([{ room_id: '!before:b' }])
  } finally {
    await db.close()
  }
})
