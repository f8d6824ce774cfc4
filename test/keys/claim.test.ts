import { afterAll, beforeAll, expect, it } from 'vitest'
import { type House, openHouse, type Person } from '../rooms/people.ts'
import { type Json, login, mapConcurrently } from '../support/api.ts'
import { deviceMaker } from './key-maker.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

const SIGNED = 'signed_curve25519'
const upload = (person: Person, body: object): Promise<Json> => person.call('POST', '/keys/upload', body)

function claim(by: Person, of: Pick<Person, 'userId' | 'deviceId'>, algorithm = SIGNED): Promise<Json> {
  return by.call('POST', '/keys/claim', { one_time_keys: { [of.userId]: { [of.deviceId]: algorithm } } })
}

const keyOf = (answer: Json, of: Person): Json => answer.one_time_keys[of.userId]?.[of.deviceId]

it('gives the keys in the order of the uploads, each once, and then nothing', async () => {
  const maker = deviceMaker(bob)
  const [first, second] = [maker.keys(1), maker.keys(1)]
  await upload(bob, { one_time_keys: first })
  expect(await upload(bob, { one_time_keys: second })).toEqual({ one_time_key_counts: { [SIGNED]: 2 } })
  expect(keyOf(await claim(alice, bob), bob)).toEqual(first)
  expect(keyOf(await claim(alice, bob), bob)).toEqual(second)
  expect(await claim(alice, bob)).toEqual({ one_time_keys: {}, failures: {} })
})

it('gives 100 distinct keys to 1,000 who ask at once, and the fallback key to the others', async () => {
  const carol = await house.person('carol')
  const maker = deviceMaker(carol)
  const keys = maker.keys(100)
  const fallback = maker.named(`${SIGNED}:fallback`, { fallback: true })
  await upload(carol, { device_keys: maker.identity(), one_time_keys: keys, fallback_keys: fallback })
  const answers = await mapConcurrently(Array.from({ length: 1_000 }), 64, () => claim(alice, carol))
  const names = answers.map((answer) => Object.keys(keyOf(answer, carol))[0])
  const oneTime = names.filter((name) => name !== `${SIGNED}:fallback`)
  expect(oneTime.toSorted()).toEqual(Object.keys(keys).toSorted())
  expect(names.length - oneTime.length).toBe(900)
  expect(keyOf(answers.at(-1), carol)).toEqual(fallback)
})

it('passes over a key that was claimed when its device uploads it once more', async () => {
  const dan = await house.person('dan')
  const keys = deviceMaker(dan).keys(1)
  await upload(dan, { one_time_keys: keys })
  await claim(alice, dan)
  expect(await upload(dan, { one_time_keys: keys })).toEqual({ one_time_key_counts: { [SIGNED]: 0 } })
  expect((await claim(alice, dan)).one_time_keys).toEqual({})
})

it('gives no key of a device, a user or an algorithm that is not there', async () => {
  const wanted: Record<string, Record<string, string>> = {
    [alice.userId]: { NOSUCH: SIGNED, __proto__x: SIGNED, constructor: 'toString' },
    '@nobody:localhost': { [alice.deviceId]: SIGNED },
    [bob.userId]: { [bob.deviceId]: 'curve25519' },
  }
  expect(await alice.call('POST', '/keys/claim', { one_time_keys: wanted })).toEqual({
    one_time_keys: {},
    failures: {},
  })
})

it('says of other servers that they gave no answer', async () => {
  const answer = await claim(alice, { userId: '@eve:elsewhere.test', deviceId: 'X' })
  expect(answer).toEqual({
    one_time_keys: {},
    failures: { 'elsewhere.test': expect.objectContaining({ status: 503 }) },
  })
})

it('knows nothing of the keys of a device that logged out, also when the id comes back', async () => {
  const account = await login(house.api, bob.userId)
  const call = (path: string, token: string, body: object) => house.api.call('POST', path, { token, body })
  const maker = deviceMaker(account)
  await call('/keys/upload', account.token, { device_keys: maker.identity(), one_time_keys: maker.keys(5) })
  await call('/logout', account.token, {})
  expect((await claim(alice, account)).one_time_keys).toEqual({})
})
