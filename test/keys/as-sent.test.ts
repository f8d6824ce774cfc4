import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { signJson } from '../../src/core/signing/json-signature.ts'
import { type House, openHouse, type Person } from '../rooms/people.ts'
import { type Json, PASSWORD } from '../support/api.ts'
import { crossSigner, deviceMaker, newPublicKey } from './key-maker.ts'

let house: House
let watcher: Person
let count = 0

beforeAll(async () => {
  house = await openHouse()
  watcher = await house.person('watcher')
})
afterAll(() => house.close())

const newPerson = () => house.person(`person${++count}`)
const query = (of: Person, by = watcher): Promise<Json> =>
  by.call('POST', '/keys/query', { device_keys: { [of.userId]: [] } })
const deviceSeen = async (of: Person): Promise<Json> => (await query(of)).device_keys[of.userId][of.deviceId]
const without = (key: string, { [key]: _, ...rest }: JsonObject): JsonObject => rest

async function claimed(of: Person): Promise<Json> {
  const wanted = { one_time_keys: { [of.userId]: { [of.deviceId]: 'signed_curve25519' } } }
  return (await watcher.call('POST', '/keys/claim', wanted)).one_time_keys[of.userId][of.deviceId]
}

describe('device keys', () => {
  test.each<[string, (person: Person) => JsonObject]>([
    ['no signature', (person) => ({ ...deviceMaker(person).identity(), signatures: {} })],
    ['a signature of other bytes', (person) => ({ ...deviceMaker(person).identity(), more: 1 })],
    [
      'the signature of another key',
      (person) =>
        signJson(without('signatures', deviceMaker(person).identity()), person.userId, deviceMaker(person).key),
    ],
    [
      'what is no signature, beside that of another key',
      (person) => {
        const signatures = { [person.userId]: { [`ed25519:${person.deviceId}`]: 'no base64!', 'ed25519:OTHER': 'x' } }
        return { ...deviceMaker(person).identity(), signatures }
      },
    ],
    ['no key that signs', (person) => deviceMaker(person).identity({ keys: {} })],
    [
      'keys that are none',
      (person) =>
        deviceMaker(person).identity({
          keys: { [`ed25519:${person.deviceId}`]: 'AAAA', [`curve25519:${person.deviceId}`]: 'no+key' },
        }),
    ],
  ])('B19: with %s are stored and told as they came', async (_, make) => {
    const person = await newPerson()
    const deviceKeys = make(person)
    await person.call('POST', '/keys/upload', { device_keys: deviceKeys })
    expect(await deviceSeen(person)).toEqual({ ...deviceKeys, unsigned: {} })
  })

  test('B19: take another signature in place of a wrong one', async () => {
    const person = await newPerson()
    const good = deviceMaker(person).identity()
    const signatures = { [person.userId]: { [`ed25519:${person.deviceId}`]: 'AAAA' } }
    for (const keys of [{ ...good, signatures }, good]) {
      await person.call('POST', '/keys/upload', { device_keys: keys })
      expect(await deviceSeen(person)).toEqual({ ...keys, unsigned: {} })
    }
  })

  test.each(['algorithms', 'device_id', 'keys', 'signatures', 'user_id'])(
    'B19: without %s are M_BAD_JSON, and nothing beside them is stored',
    async (member) => {
      const person = await newPerson()
      const maker = deviceMaker(person)
      const body = { device_keys: without(member, maker.identity()), one_time_keys: maker.keys(1) }
      const answer = await person.ask('POST', '/keys/upload', body)
      expect([answer.status, answer.body.errcode]).toEqual([400, 'M_BAD_JSON'])
      expect((await query(person)).device_keys[person.userId]).toEqual({})
      const { one_time_key_counts: counts } = await person.call('POST', '/keys/upload', {})
      expect(counts).toEqual({ signed_curve25519: 0 })
    },
  )
})

describe.each(['one_time_keys', 'fallback_keys'])('%s', (part) => {
  const NAME = 'signed_curve25519:AAAA'

  test.each<[string, (person: Person) => JsonObject | string]>([
    ['no signature', () => ({ key: newPublicKey(), signatures: {} })],
    ['the signature of another device', (person) => deviceMaker(person).named(NAME)[NAME] as JsonObject],
    [
      'what is no signature',
      (person) => ({ key: newPublicKey(), signatures: { [person.userId]: { [`ed25519:${person.deviceId}`]: '-' } } }),
    ],
    ['a key that is none', (person) => deviceMaker(person).named(NAME, { key: 'AAAA' })[NAME] as JsonObject],
    ['a text where a signed key is due', () => newPublicKey()],
  ])('B19: with %s are stored and given as they came', async (_, make) => {
    const person = await newPerson()
    await person.call('POST', '/keys/upload', { device_keys: deviceMaker(person).identity() })
    const key = make(person)
    await person.call('POST', '/keys/upload', { [part]: { [NAME]: key } })
    expect(await claimed(person)).toEqual({ [NAME]: key })
  })

  test.each(['key', 'signatures'])('B19: that lack %s are M_BAD_JSON', async (member) => {
    const person = await newPerson()
    const key = without(member, deviceMaker(person).named(NAME)[NAME] as JsonObject)
    const answer = await person.ask('POST', '/keys/upload', { [part]: { [NAME]: key } })
    expect([answer.status, answer.body.errcode]).toEqual([400, 'M_BAD_JSON'])
  })
})

describe('cross-signing keys', () => {
  const MORE = { unsigned: { a: ['ü'] }, 'org.example.more': { b: null }, __proto__x: 1 }

  test('B19: come back exactly as they were uploaded, with members of any name, and signatures that are wrong', async () => {
    const person = await newPerson()
    const { keys, object } = crossSigner(person.userId)
    const signatures = { [person.userId]: { [`ed25519:${person.deviceId}`]: 'AAAA', 'ed25519:OTHER': 'x' } }
    const body = {
      master_key: { ...object('master'), ...MORE, signatures },
      self_signing_key: signJson({ ...object('self_signing'), ...MORE }, person.userId, keys.master),
      user_signing_key: signJson({ ...object('user_signing'), ...MORE }, person.userId, keys.master),
    }
    await person.call('POST', '/keys/device_signing/upload', body)
    const seen = await query(person, person)
    expect(seen.master_keys[person.userId]).toEqual(body.master_key)
    expect(seen.self_signing_keys[person.userId]).toEqual(body.self_signing_key)
    expect(seen.user_signing_keys[person.userId]).toEqual(body.user_signing_key)
    // The same again is no change, so that nobody has to prove anything.
    await person.call('POST', '/keys/device_signing/upload', body)
    expect((await query(person)).master_keys[person.userId]).toEqual(body.master_key)
  })

  test.each<[string, (person: Person) => JsonObject]>([
    ['without signatures', () => ({})],
    ['with empty signatures', () => ({ signatures: {} })],
    ['with no signature by the user', ({ userId }) => ({ signatures: { [userId]: {} } })],
  ])('B19: a master key that came %s comes back exactly so', async (_, more) => {
    const person = await newPerson()
    const { keys, object } = crossSigner(person.userId)
    const master_key = { ...object('master'), ...more(person) }
    await person.call('POST', '/keys/device_signing/upload', { master_key })
    for (const by of [person, watcher]) {
      expect((await query(person, by)).master_keys[person.userId]).toEqual(master_key)
    }
    // What is signed later stands beside it.
    await person.call('POST', '/keys/upload', { device_keys: deviceMaker(person).identity() })
    const self_signing_key = signJson(object('self_signing'), person.userId, keys.master)
    const auth = { type: 'm.login.password', user: person.userId, password: PASSWORD }
    await person.call('POST', '/keys/device_signing/upload', { self_signing_key, auth })
    expect((await query(person)).self_signing_keys[person.userId]).toEqual(self_signing_key)
    expect((await query(person)).master_keys[person.userId]).toEqual(master_key)
  })

  test('B19: that came without signatures come back without them', async () => {
    const person = await newPerson()
    const body = crossSigner(person.userId).body()
    await person.call('POST', '/keys/device_signing/upload', body)
    expect((await query(person)).master_keys[person.userId]).toEqual(body.master_key)
  })

  test('B19: with unsigned members are signed by the keys of others all the same', async () => {
    const person = await newPerson()
    const own = crossSigner(watcher.userId)
    const auth = { type: 'm.login.password', user: watcher.userId, password: PASSWORD }
    await watcher.call('POST', '/keys/device_signing/upload', { ...own.body(), auth })
    const { keys } = crossSigner(person.userId).object('master')
    const master: JsonObject = { user_id: person.userId, usage: ['master'], keys: keys!, ...MORE }
    await person.call('POST', '/keys/device_signing/upload', { master_key: master })
    const signed = signJson(master, watcher.userId, own.keys.user_signing)
    const name = Object.values(keys as Record<string, string>)[0]!
    const sent = { [person.userId]: { [name]: signed } }
    expect(await watcher.call('POST', '/keys/signatures/upload', sent)).toEqual({ failures: {} })
    expect((await query(person)).master_keys[person.userId]).toEqual(signed)
  })
})
