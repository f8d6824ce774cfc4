import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { type Answer, type House, openHouse, type Person } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'
import { deviceMaker, newPublicKey } from './key-maker.ts'

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
const upload = (person: Person, body: unknown): Promise<Answer> => person.ask('POST', '/keys/upload', body)
const query = (by: Person, of: Person, devices: string[] = []): Promise<Json> =>
  by.call('POST', '/keys/query', { device_keys: { [of.userId]: devices } })

describe('device keys', () => {
  it('are given to whoever asks as they were uploaded, with the name of the device', async () => {
    const maker = deviceMaker(bob)
    const identity = maker.identity({ 'org.example.extra': { a: [1, 'ü'] } })
    expect(await upload(bob, { device_keys: identity })).toEqual({
      status: 200,
      body: { one_time_key_counts: { [SIGNED]: 0 } },
    })
    const expected = { ...identity, unsigned: {} }
    expect(await query(alice, bob)).toEqual({
      device_keys: { [bob.userId]: { [bob.deviceId]: expected } },
      master_keys: {},
      self_signing_keys: {},
      user_signing_keys: {},
      failures: {},
    })
    await bob.call('PUT', `/devices/${bob.deviceId}`, { display_name: "Bob's <phone>" })
    const named = (await query(alice, bob, [bob.deviceId])).device_keys[bob.userId][bob.deviceId]
    expect(named).toEqual({ ...identity, unsigned: { device_display_name: "Bob's <phone>" } })
    expect((await query(alice, bob, ['OTHER'])).device_keys).toEqual({ [bob.userId]: {} })
  })

  it('of the same device again change nothing, and others take their place with all that was signed by them gone', async () => {
    const carol = await house.person('carol')
    const maker = deviceMaker(carol)
    const body = { device_keys: maker.identity(), one_time_keys: maker.keys(3), fallback_keys: maker.named('x:f') }
    await upload(carol, body)
    expect((await upload(carol, body)).body).toEqual({ one_time_key_counts: { [SIGNED]: 3 } })
    const other = deviceMaker(carol)
    expect((await upload(carol, { device_keys: other.identity() })).body).toEqual({
      one_time_key_counts: { [SIGNED]: 0 },
    })
    expect((await query(alice, carol)).device_keys[carol.userId][carol.deviceId].keys).toEqual(other.identity().keys)
  })

  const refused: readonly (readonly [string, (person: Person) => JsonObject, string])[] = [
    ['another user', (person) => deviceMaker({ ...person, userId: bob.userId }).identity(), 'M_INVALID_PARAM'],
    ['another device', (person) => deviceMaker({ ...person, deviceId: 'OTHER' }).identity(), 'M_INVALID_PARAM'],
    [
      'a device named as a prototype',
      (person) => deviceMaker({ ...person, deviceId: '__proto__' }).identity(),
      'M_INVALID_PARAM',
    ],
    [
      'algorithms that are no list',
      (person) => deviceMaker(person).identity({ algorithms: 'm.olm' }),
      'M_INVALID_PARAM',
    ],
    ['algorithms that are no names', (person) => deviceMaker(person).identity({ algorithms: [1] }), 'M_INVALID_PARAM'],
    [
      'too many algorithms',
      (person) => deviceMaker(person).identity({ algorithms: Array(33).fill('a') }),
      'M_INVALID_PARAM',
    ],
    ['keys that are a list', (person) => deviceMaker(person).identity({ keys: [] }), 'M_INVALID_PARAM'],
    ['a key of another device', (person) => withKey(person, 'curve25519:OTHER', newPublicKey()), 'M_INVALID_PARAM'],
    ['a key without algorithm', (person) => withKey(person, `:${person.deviceId}`, newPublicKey()), 'M_INVALID_PARAM'],
    ['a key that is no text', (person) => withKey(person, `curve25519:${person.deviceId}`, 1), 'M_INVALID_PARAM'],
    [
      'signatures that are a text',
      (person) => ({ ...deviceMaker(person).identity(), signatures: 'x' }),
      'M_INVALID_PARAM',
    ],
    ['a signature that is no text', (person) => signedAs(person, { 'ed25519:X': 1 }), 'M_INVALID_PARAM'],
    ['a NUL in a signature', (person) => signedAs(person, { 'ed25519:X': 'a\0' }), 'M_INVALID_PARAM'],
    [
      'too long a name of a signature',
      (person) => signedAs(person, { [`ed25519:${'x'.repeat(2_000)}`]: 'a' }),
      'M_INVALID_PARAM',
    ],
    [
      'signatures that are too large',
      (person) => signedAs(person, { 'ed25519:X': 'a'.repeat(17_000) }),
      'M_INVALID_PARAM',
    ],
    [
      'more than a key may be large',
      (person) => deviceMaker(person).identity({ more: 'x'.repeat(17_000) }),
      'M_INVALID_PARAM',
    ],
    ['a float', (person) => ({ ...deviceMaker(person).identity(), more: 1.5 }), 'M_BAD_JSON'],
    ['half a surrogate', (person) => ({ ...deviceMaker(person).identity(), more: '\ud800' }), 'M_BAD_JSON'],
  ]

  it.each(refused)('with %s are refused and reach nobody', async (_, make, errcode) => {
    const person = await house.person(`p${newPublicKey().replaceAll(/[^a-z]/g, '')}`)
    const { status, body } = await upload(person, {
      device_keys: make(person),
      one_time_keys: deviceMaker(person).keys(1),
    })
    expect([status, body.errcode]).toEqual([400, errcode])
    expect((await query(alice, person)).device_keys[person.userId]).toEqual({})
    expect((await upload(person, {})).body).toEqual({ one_time_key_counts: { [SIGNED]: 0 } })
  })

  it('keep keys and signatures of any name, also of prototypes', async () => {
    const dan = await house.person('dan')
    const maker = deviceMaker(dan)
    const object = JSON.parse('{"__proto__":{"a":1},"constructor":"x","toString":[]}') as JsonObject
    const identity = maker.identity(object)
    expect((await upload(dan, { device_keys: identity })).status).toBe(200)
    const answer = (await query(alice, dan)).device_keys[dan.userId][dan.deviceId]
    expect(JSON.stringify(answer)).toContain('"__proto__":{"a":1}')
    expect(answer).toEqual({ ...identity, unsigned: {} })
  })
})

const signedAs = (person: Person, signatures: JsonObject): JsonObject => ({
  ...deviceMaker(person).identity(),
  signatures: { [person.userId]: signatures },
})

function withKey(person: Person, name: string, value: string | number): JsonObject {
  const maker = deviceMaker(person)
  return maker.identity({ keys: { ...(maker.identity().keys as JsonObject), [name]: value } })
}

describe('one-time keys', () => {
  it('are counted, and the same again changes nothing', async () => {
    const erin = await house.person('erin')
    const maker = deviceMaker(erin)
    const keys = { ...maker.keys(4), 'curve25519:a': newPublicKey(), 'org.example:b': 'any text', 'constructor:c': 'c' }
    const counts = { one_time_key_counts: { [SIGNED]: 4, curve25519: 1, 'org.example': 1, constructor: 1 } }
    expect((await upload(erin, { device_keys: maker.identity(), one_time_keys: keys })).body).toEqual(counts)
    expect((await upload(erin, { one_time_keys: keys })).body).toEqual(counts)
  })

  it('of the same id with other bytes are refused, and those beside them too', async () => {
    const fay = await house.person('fay')
    const maker = deviceMaker(fay)
    await upload(fay, { one_time_keys: maker.named(`${SIGNED}:AAAA`) })
    const again = { ...maker.named(`${SIGNED}:AAAA`), ...maker.keys(2) }
    const { status, body } = await upload(fay, { device_keys: maker.identity(), one_time_keys: again })
    expect([status, body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
    expect((await upload(fay, {})).body.one_time_key_counts).toEqual({ [SIGNED]: 1 })
    expect((await query(alice, fay)).device_keys[fay.userId]).toEqual({})
  })

  it('clash also when 20 uploads come at once: one of them stands', async () => {
    const gus = await house.person('gus')
    const maker = deviceMaker(gus)
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => upload(gus, { one_time_keys: maker.named(`${SIGNED}:AAAA`) })),
    )
    expect(answers.filter(({ status }) => status === 200).length).toBe(1)
    expect((await upload(gus, {})).body.one_time_key_counts).toEqual({ [SIGNED]: 1 })
  })

  it('are 300 of an upload, 1,000 of an algorithm and of 10 algorithms at most', async () => {
    const hal = await house.person('hal')
    const maker = deviceMaker(hal)
    expect((await upload(hal, { one_time_keys: maker.keys(301) })).body.errcode).toBe('M_TOO_LARGE')
    for (const count of [300, 300, 300, 99]) await upload(hal, { one_time_keys: maker.keys(count) })
    expect((await upload(hal, { one_time_keys: maker.keys(2) })).body.errcode).toBe('M_INVALID_PARAM')
    expect((await upload(hal, { one_time_keys: maker.keys(1) })).status).toBe(200)
    const many = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`a${index}:k`, 'x']))
    expect((await upload(hal, { one_time_keys: many })).body.errcode).toBe('M_INVALID_PARAM')
  })

  const refused: readonly (readonly [string, (person: Person) => JsonObject, string])[] = [
    ['no colon in the name', () => ({ nothing: 'x' }), 'M_INVALID_PARAM'],
    ['no algorithm', () => ({ ':AAAA': 'x' }), 'M_INVALID_PARAM'],
    ['a blank in the name', () => ({ 'a b:c': 'x' }), 'M_INVALID_PARAM'],
    ['a NUL in the name', () => ({ 'a:c\0': 'x' }), 'M_INVALID_PARAM'],
    ['a name that is too long', () => ({ [`a:${'c'.repeat(256)}`]: 'x' }), 'M_INVALID_PARAM'],
    ['a number', () => ({ 'a:b': 1 }), 'M_INVALID_PARAM'],
    ['null', () => ({ 'a:b': null }), 'M_INVALID_PARAM'],
    ['a list', () => ({ 'a:b': [] }), 'M_INVALID_PARAM'],
    [
      'an object with a number for a key',
      (person) => deviceMaker(person).named(`${SIGNED}:a`, { key: 1 }),
      'M_INVALID_PARAM',
    ],
    [
      'signatures that are too large',
      (person) => ({ [`${SIGNED}:a`]: { ...signedAs(person, { x: 'a'.repeat(17_000) }), key: 'x' } }),
      'M_INVALID_PARAM',
    ],
    [
      'more than a key may be large',
      (person) => deviceMaker(person).named(`${SIGNED}:a`, { more: 'x'.repeat(17_000) }),
      'M_INVALID_PARAM',
    ],
    ['a text that is too large', () => ({ 'a:b': 'x'.repeat(17_000) }), 'M_INVALID_PARAM'],
    ['a float', () => ({ [`${SIGNED}:a`]: { key: 1.5 } }), 'M_BAD_JSON'],
  ]

  it.each(refused)('with %s are refused', async (_, make, errcode) => {
    for (const part of ['one_time_keys', 'fallback_keys']) {
      const { status, body } = await upload(alice, { [part]: make(alice) })
      expect([status, body.errcode]).toEqual([400, errcode])
    }
    expect((await upload(alice, {})).body.one_time_key_counts).toEqual({ [SIGNED]: 0 })
  })

  it('are told without signatures by others', async () => {
    const jan = await house.person('jan')
    const key = deviceMaker(jan).named(`${SIGNED}:a`)
    const own = key[`${SIGNED}:a`] as JsonObject
    const signatures = { ...(own.signatures as JsonObject), [bob.userId]: { 'ed25519:X': 'AAAA' } }
    await upload(jan, { one_time_keys: { [`${SIGNED}:a`]: { ...own, signatures, unsigned: { a: 1 } } } })
    const wanted = { one_time_keys: { [jan.userId]: { [jan.deviceId]: SIGNED } } }
    expect((await alice.call('POST', '/keys/claim', wanted)).one_time_keys[jan.userId][jan.deviceId]).toEqual(key)
  })
})

describe('fallback keys', () => {
  it('are one per algorithm', async () => {
    const { body } = await upload(alice, { fallback_keys: deviceMaker(alice).keys(2) })
    expect(body.errcode).toBe('M_INVALID_PARAM')
  })

  it('are taken under the name that clients used before they were specified', async () => {
    const kim = await house.person('kim')
    const keys = deviceMaker(kim).keys(1)
    await upload(kim, { 'org.matrix.msc2732.fallback_keys': keys })
    const wanted = { one_time_keys: { [kim.userId]: { [kim.deviceId]: SIGNED } } }
    for (let time = 0; time < 2; time++) {
      const claimed = await alice.call('POST', '/keys/claim', wanted)
      expect(claimed.one_time_keys[kim.userId][kim.deviceId]).toEqual(keys)
    }
  })
})

describe('bodies', () => {
  it.each([
    ['/keys/upload', []],
    ['/keys/upload', { device_keys: [] }],
    ['/keys/upload', { one_time_keys: 'x' }],
    ['/keys/upload', { fallback_keys: 1 }],
    ['/keys/query', { device_keys: [] }],
    ['/keys/query', { device_keys: { nobody: [] } }],
    ['/keys/query', { device_keys: { '@a:localhost': [1] } }],
    ['/keys/query', { device_keys: {}, timeout: -1 }],
    ['/keys/query', {}],
    ['/keys/claim', {}],
    ['/keys/claim', { one_time_keys: { nobody: {} } }],
    ['/keys/claim', { one_time_keys: { '@a:localhost': [] } }],
    ['/keys/claim', { one_time_keys: { '@a:localhost': { X: 1 } } }],
    ['/keys/claim', { one_time_keys: { '@a:localhost': { X: 'a\0' } } }],
  ])('to %s: %j is refused', async (path, body) => {
    expect((await alice.ask('POST', path, body)).status).toBe(400)
  })

  it('may ask for devices by any names, and for nobody', async () => {
    expect((await query(alice, bob, ['__proto__', 'constructor', '\0'])).device_keys).toEqual({ [bob.userId]: {} })
    expect((await alice.call('POST', '/keys/query', { device_keys: {} })).device_keys).toEqual({})
  })

  it('may ask for users who are not there, here and elsewhere', async () => {
    const asked = { '@nobody:localhost': [], '@eve:elsewhere.test': [] }
    const answer = await alice.call('POST', '/keys/query', { device_keys: asked })
    expect(answer.device_keys).toEqual({})
    expect(answer.failures).toEqual({ 'elsewhere.test': expect.objectContaining({ status: 503 }) })
  })
})

it.each(['/_matrix/client/r0', '/_matrix/client/unstable', '/_proto/client/r0'])(
  'serves keys under %s',
  async (root) => {
    for (const [path, body] of [
      ['/keys/upload', {}],
      [`/keys/upload/${alice.deviceId}`, {}],
      ['/keys/query', { device_keys: {} }],
      ['/keys/claim', { one_time_keys: {} }],
    ]) {
      expect((await alice.ask('POST', `${root}${path}`, body)).status).toBe(200)
    }
  },
)
