import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { type House, openHouse } from '../rooms/people.ts'
import { type KeyedPerson, keyedPerson } from './people-with-keys.ts'

let house: House
let alice: KeyedPerson
let bob: KeyedPerson
let room: string

beforeAll(async () => {
  house = await openHouse()
  alice = await keyedPerson(house, 'alice')
  bob = await keyedPerson(house, 'bob')
  room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
})
afterEach(() => vi.restoreAllMocks())
afterAll(() => house.close())

const OF_KEYS = /\b(?:device_key|one_time_key|fallback_key|cross_signing_key|key_signature|device_list|room_member)\b/

/** The queries about keys and neighbours that the server of this process makes meanwhile. */
async function queriesDuring(act: () => Promise<unknown>): Promise<string[]> {
  const spy = vi.spyOn(pg.Client.prototype, 'query')
  await act()
  const texts = spy.mock.calls.map(([query]) => (query as unknown as { text?: string })?.text ?? '')
  spy.mockRestore()
  return texts.filter((text) => OF_KEYS.test(text))
}

it('a sync in which nobody changed keys or membership asks the database nothing about keys', async () => {
  let { next_batch: since } = await alice.sync()
  const next = async () => {
    since = (await alice.sync(`&since=${since}`)).next_batch
  }
  await next()
  expect(await queriesDuring(next)).toEqual([])
  expect(
    await queriesDuring(async () => {
      await bob.say(room, 'hello')
      await next()
    }),
  ).not.toContainEqual(expect.stringMatching(/device_list|one_time_key|key_signature/))
})

it('one in which a neighbour changed keys asks once, and the next one nothing', async () => {
  let { next_batch: since } = await alice.sync()
  const next = async () => {
    since = (await alice.sync(`&since=${since}`)).next_batch
  }
  await next()
  await bob.rekey()
  expect((await queriesDuring(next)).length).toBe(1)
  expect(await queriesDuring(next)).toEqual([])
})

it('keys of strangers cost nothing', async () => {
  const carol = await keyedPerson(house, 'carol')
  const { next_batch: since } = await alice.sync()
  await carol.rekey()
  expect(await queriesDuring(() => alice.sync(`&since=${since}`))).toEqual([])
})
