import { afterAll, beforeAll, expect, it } from 'vitest'
import { type House, openHouse } from '../rooms/people.ts'

let house: House

beforeAll(async () => {
  house = await openHouse()
})
afterAll(() => house.close())

it('a presence that nobody can be told of, since the database fails, ends no process', async () => {
  const alice = await house.person('alice')
  await alice.createRoom()
  await house.restart()
  const { db } = house.server.database
  const unhandled: unknown[] = []
  const note = (error: unknown) => unhandled.push(error)
  process.on('unhandledRejection', note)
  await db.tx((tx) => tx.query('ALTER TABLE room_member RENAME TO room_member_away'))
  const path = `/presence/${encodeURIComponent(alice.userId)}/status`
  expect((await alice.ask('PUT', path, { presence: 'unavailable' })).status).toBe(200)
  await db.tx((tx) => tx.query('ALTER TABLE room_member_away RENAME TO room_member'))
  await alice.sync()
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})

it('push rules that cannot be read, while other reads of a first sync are under way, end no process', async () => {
  const bob = await house.person('bob')
  await bob.createRoom()
  await bob.call('PUT', '/pushrules/global/content/hello', { pattern: 'hello', actions: ['notify'] })
  await house.restart()
  const { db } = house.server.database
  const unhandled: unknown[] = []
  const note = (error: unknown) => unhandled.push(error)
  process.on('unhandledRejection', note)
  await db.tx((tx) => tx.query('ALTER TABLE push_rules RENAME TO push_rules_away'))
  expect((await bob.ask('GET', '/sync')).status).toBe(500)
  await db.tx((tx) => tx.query('ALTER TABLE push_rules_away RENAME TO push_rules'))
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})
