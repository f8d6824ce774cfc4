import { afterAll, beforeAll, expect, it, test } from 'vitest'
import { type House, openHouse, type Person } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

const DEADLOCK = '40P01'

/** Runs `work` while nothing can be read from any table. */
async function withoutTables<T>(work: () => Promise<T>): Promise<T> {
  const { db } = house.server.database
  const tables = await db.query<{ name: string }>(`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`)
  const lock = `LOCK TABLE ${tables.map(({ name }) => `"${name}"`).join(', ')} IN ACCESS EXCLUSIVE MODE`
  for (;;) {
    try {
      return await db.tx(async (tx) => {
        await tx.query(lock)
        return work()
      })
    } catch (error) {
      // Something in the background had locked some of them, and waited for others.
      if ((error as { code?: string }).code !== DEADLOCK) throw error
    }
  }
}

it('an incremental sync that finds nothing asks the database nothing at all', async () => {
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  await alice.say(room, 'hello')
  const device = { [bob.deviceId]: { x: 1 } }
  await alice.call('PUT', '/sendToDevice/m.test/1', { messages: { [bob.userId]: device } })
  let since = (await bob.sync()).next_batch
  since = (await bob.sync(`&since=${since}`)).next_batch
  // Somebody else's news move every position.
  await alice.call('PUT', '/sendToDevice/m.test/2', { messages: { [alice.userId]: { '*': {} } } })
  await alice.say(await alice.createRoom(), 'to myself')
  await withoutTables(async () => {
    for (let time = 0; time < 5; time++) {
      const signal = AbortSignal.timeout(10_000)
      const { body } = await house.api.request('GET', `/sync?timeout=${time}&since=${since}`, {
        token: bob.token,
        signal,
      })
      since = body.next_batch
      expect([body.rooms, body.to_device.events]).toEqual([undefined, []])
    }
  })
})

test('B20: unsigned.membership of who was there all the time costs no query', async () => {
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  const { next_batch: since } = await bob.sync()
  for (const text of ['one', 'two']) await alice.say(room, text)
  // What else the room's section reads is at hand after this.
  await bob.sync(`&since=${since}`)
  await withoutTables(async () => {
    const signal = AbortSignal.timeout(10_000)
    const { body } = await house.api.request('GET', `/sync?timeout=0&since=${since}`, { token: bob.token, signal })
    const shown = body.rooms.join[room].timeline.events.map(({ unsigned }: Json) => unsigned.membership)
    expect(shown).toEqual(['join', 'join'])
  })
})
