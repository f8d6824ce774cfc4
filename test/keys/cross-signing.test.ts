import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { signJson } from '../../src/core/signing/json-signature.ts'
import type { SigningKey } from '../../src/core/signing/key.ts'
import { type Answer, type House, openHouse, type Person } from '../rooms/people.ts'
import { type Json, login, PASSWORD } from '../support/api.ts'
import { type CrossSigner, crossSigner, deviceMaker, newPublicKey } from './key-maker.ts'
import { idsOfPeople, type KeyedPerson, keyedPerson, listsOf } from './people-with-keys.ts'

let house: House
let watcher: KeyedPerson
let count = 0

beforeAll(async () => {
  house = await openHouse()
  watcher = await keyedPerson(house, 'watcher')
})
afterAll(() => house.close())

const newPerson = (): Promise<KeyedPerson> => keyedPerson(house, `person${++count}`)
const PATH = '/keys/device_signing/upload'
const upload = (person: Person, body: object, path = PATH): Promise<Answer> => person.ask('POST', path, body)

function withPassword(person: Person, body: object, session?: string): object {
  const identifier = { type: 'm.id.user', user: person.userId }
  return { ...body, auth: { type: 'm.login.password', identifier, password: PASSWORD, session } }
}

async function signedPerson(): Promise<{ person: KeyedPerson; signer: CrossSigner }> {
  const person = await newPerson()
  const signer = crossSigner(person.userId)
  await person.call('POST', PATH, signer.body())
  return { person, signer }
}

const query = (by: Person, of: Person): Promise<Json> =>
  by.call('POST', '/keys/query', { device_keys: { [of.userId]: [] } })
const masterSeen = async (by: Person, of: Person): Promise<Json> => (await query(by, of)).master_keys[of.userId]

describe('keys/device_signing/upload', () => {
  it('takes the first keys without further proof, and shows them: the user-signing key to the user alone', async () => {
    const { person, signer } = await signedPerson()
    const body = signer.body() as Json
    const keys = {
      master_keys: { [person.userId]: body.master_key },
      self_signing_keys: { [person.userId]: body.self_signing_key },
    }
    expect(await query(watcher, person)).toMatchObject({ ...keys, user_signing_keys: {} })
    expect(await query(person, person)).toMatchObject({
      ...keys,
      user_signing_keys: { [person.userId]: body.user_signing_key },
    })
  })

  it('takes the same again without proof, all or some', async () => {
    const { person, signer } = await signedPerson()
    const { self_signing_key, ...others } = signer.body()
    for (const body of [signer.body(), others, { self_signing_key }, {}]) {
      expect(await upload(person, body)).toEqual({ status: 200, body: {} })
    }
  })

  it('asks who changes keys or adds one to prove who they are, and takes them then', async () => {
    const { person } = await signedPerson()
    const other = crossSigner(person.userId)
    const challenged = await upload(person, other.body())
    expect([challenged.status, challenged.body.flows]).toEqual([401, [{ stages: ['m.login.password'] }]])
    expect((await masterSeen(watcher, person)).keys).not.toEqual(other.object('master').keys)
    const { session } = challenged.body
    expect((await upload(person, withPassword(person, other.body(), session))).status).toBe(200)
    expect((await masterSeen(watcher, person)).keys).toEqual(other.object('master').keys)

    const alone = await newPerson()
    const { master_key, ...rest } = crossSigner(alone.userId).body()
    expect((await upload(alone, { master_key: master_key! })).status).toBe(200)
    expect((await upload(alone, rest)).status).toBe(401)
  })

  it('lets nobody through without proof under /_proto, not with the first keys either', async () => {
    const person = await newPerson()
    const body = crossSigner(person.userId).body()
    const path = '/_proto/client/r0/keys/device_signing/upload'
    expect((await upload(person, body, path)).status).toBe(401)
    expect((await upload(person, withPassword(person, body), path)).status).toBe(200)
    expect((await upload(person, body, path)).status).toBe(401)
    expect((await upload(person, body)).status).toBe(200)
  })

  it('takes one of 20 first uploads that come at once', async () => {
    const person = await newPerson()
    const signers = Array.from({ length: 20 }, () => crossSigner(person.userId))
    const answers = await Promise.all(signers.map((signer) => upload(person, signer.body())))
    const taken = signers.filter((_, index) => answers[index]!.status === 200)
    expect(taken.length).toBe(1)
    expect((await masterSeen(watcher, person)).keys).toEqual(taken[0]!.object('master').keys)
  })

  it('removes with a master key what it has signed and the new one has not', async () => {
    const { person } = await signedPerson()
    const other = crossSigner(person.userId)
    const { master_key } = other.body()
    await person.call('POST', PATH, withPassword(person, { master_key }))
    const seen = await query(person, person)
    expect([Object.keys(seen.self_signing_keys), Object.keys(seen.user_signing_keys)]).toEqual([[], []])
  })

  it('keeps the signatures of the master key by the user, good or not, and none by others', async () => {
    const person = await newPerson()
    const signer = crossSigner(person.userId)
    const unsigned = signer.object('master')
    const good = signJson(unsigned, person.userId, person.maker.key)
    const own = (good.signatures as Json)[person.userId]
    const signatures = {
      [person.userId]: { ...own, 'ed25519:OTHER': Object.values(own)[0] },
      [watcher.userId]: { 'ed25519:X': 'AAAA' },
    }
    await person.call('POST', PATH, { ...signer.body(), master_key: { ...unsigned, signatures } })
    expect((await masterSeen(watcher, person)).signatures).toEqual({ [person.userId]: signatures[person.userId] })
  })

  const refused: readonly (readonly [string, (person: Person, signer: CrossSigner) => object, number, string])[] = [
    ['no master key', (_, signer) => without(signer.body(), 'master_key'), 400, 'M_MISSING_PARAM'],
    ['another user', () => crossSigner(watcher.userId).body(), 400, 'M_INVALID_PARAM'],
    [
      'another usage',
      (_, s) => ({ master_key: { ...s.object('master'), usage: ['self_signing'] } }),
      400,
      'M_INVALID_PARAM',
    ],
    [
      'two usages',
      (_, s) => ({ master_key: { ...s.object('master'), usage: ['master', 'x'] } }),
      400,
      'M_INVALID_PARAM',
    ],
    ['no usage', (_, s) => ({ master_key: without(s.object('master'), 'usage') }), 400, 'M_INVALID_PARAM'],
    ['no key', (_, s) => ({ master_key: { ...s.object('master'), keys: {} } }), 400, 'M_INVALID_PARAM'],
    [
      'two keys',
      (_, s) => ({
        master_key: { ...s.object('master'), keys: { ...named(newPublicKey()), ...named(newPublicKey()) } },
      }),
      400,
      'M_INVALID_PARAM',
    ],
    [
      'a key under another name',
      (_, s) => ({ master_key: { ...s.object('master'), keys: { 'ed25519:x': newPublicKey() } } }),
      400,
      'M_INVALID_PARAM',
    ],
    [
      'a key that is none',
      (_, s) => ({ master_key: { ...s.object('master'), keys: named('AAAA') } }),
      400,
      'M_INVALID_PARAM',
    ],
    [
      'a padded key',
      (_, s) => ({ master_key: { ...s.object('master'), keys: named(`${newPublicKey()}=`) } }),
      400,
      'M_INVALID_PARAM',
    ],
    [
      'a key of another algorithm',
      (_, s) => ({ master_key: { ...s.object('master'), keys: { 'x:y': 'y' } } }),
      400,
      'M_INVALID_PARAM',
    ],
    [
      'one key for two usages',
      (person, s) => ({
        ...s.body(),
        self_signing_key: signJson({ ...s.object('master'), usage: ['self_signing'] }, person.userId, s.keys.master),
      }),
      400,
      'M_INVALID_PARAM',
    ],
    ['a list for a key', () => ({ master_key: [] }), 400, 'M_BAD_JSON'],
    ['a float in a key', (_, s) => ({ master_key: { ...s.object('master'), more: 1.5 } }), 400, 'M_BAD_JSON'],
    [
      'too large a key',
      (_, s) => ({ master_key: { ...s.object('master'), more: 'x'.repeat(17_000) } }),
      400,
      'M_INVALID_PARAM',
    ],
    [
      'an unsigned self-signing key',
      (_, s) => ({ ...s.body(), self_signing_key: s.object('self_signing') }),
      400,
      'M_INVALID_SIGNATURE',
    ],
    [
      'a user-signing key signed by another master',
      (person, s) => ({ ...s.body(), user_signing_key: crossSigner(person.userId).body().user_signing_key }),
      400,
      'M_INVALID_SIGNATURE',
    ],
  ]

  it.each(refused)('refuses %s', async (_, make, status, errcode) => {
    const person = await newPerson()
    const answer = await upload(person, make(person, crossSigner(person.userId)))
    expect([answer.status, answer.body.errcode]).toEqual([status, errcode])
    expect((await query(person, person)).master_keys).toEqual({})
  })

  it('refuses a key that is named as a device, and a device that is named as a key', async () => {
    const person = await newPerson()
    const signer = crossSigner(person.userId)
    const device = {
      type: 'm.login.password',
      identifier: { type: 'm.id.user', user: person.userId },
      password: PASSWORD,
    }
    const second = await house.api.call('POST', '/login', {
      body: { ...device, device_id: signer.keys.self_signing.publicKey },
    })
    const answer = await upload(person, signer.body())
    expect([answer.status, answer.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    const asSecond = { token: second.access_token, body: {} }
    await house.api.call('POST', '/logout', asSecond)
    await person.call('POST', PATH, signer.body())
    const third = await house.api.call('POST', '/login', {
      body: { ...device, device_id: signer.keys.master.publicKey },
    })
    const keys = deviceMaker({ userId: person.userId, deviceId: third.device_id }).identity()
    const refusal = await house.api.request('POST', '/keys/upload', {
      token: third.access_token,
      body: { device_keys: keys },
    })
    expect([refusal.status, refusal.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
  })
})

const named = (key: string): JsonObject => ({ [`ed25519:${key}`]: key })
const without = (object: JsonObject, key: string): JsonObject => {
  const { [key]: _, ...rest } = object
  return rest
}

const sign = (person: Person, signed: object): Promise<Json> => person.call('POST', '/keys/signatures/upload', signed)

/** An object with nothing but new signatures. */
function signedBy(object: JsonObject, userId: string, key: SigningKey): JsonObject {
  const { signatures: _, unsigned: __, ...plain } = object
  return signJson(plain, userId, key)
}

describe('keys/signatures/upload', () => {
  it('adds a signature of a device by the self-signing key, and all see it', async () => {
    const { person, signer } = await signedPerson()
    const object = signedBy(person.maker.identity(), person.userId, signer.keys.self_signing)
    expect(await sign(person, { [person.userId]: { [person.deviceId]: object } })).toEqual({ failures: {} })
    const seen = (await query(watcher, person)).device_keys[person.userId][person.deviceId]
    expect(Object.keys(seen.signatures[person.userId]).toSorted()).toEqual(
      [`ed25519:${person.deviceId}`, signer.keys.self_signing.keyId].toSorted(),
    )
  })

  it('adds a signature of the master key by a device of the user, and all see it', async () => {
    const { person, signer } = await signedPerson()
    const object = signedBy(signer.object('master'), person.userId, person.maker.key)
    const key = signer.keys.master.publicKey
    expect(await sign(person, { [person.userId]: { [key]: object } })).toEqual({ failures: {} })
    expect((await masterSeen(watcher, person)).signatures).toEqual(object.signatures)
  })

  it("adds a signature of another user's master key, which nobody but the signer sees", async () => {
    const [alice, bob] = [await signedPerson(), await signedPerson()]
    const object = signedBy(bob.signer.object('master'), alice.person.userId, alice.signer.keys.user_signing)
    const signed = { [bob.person.userId]: { [bob.signer.keys.master.publicKey]: object } }
    expect(await sign(alice.person, signed)).toEqual({ failures: {} })
    expect((await masterSeen(alice.person, bob.person)).signatures).toEqual(object.signatures)
    expect((await masterSeen(bob.person, bob.person)).signatures).toBeUndefined()
    expect((await masterSeen(watcher, bob.person)).signatures).toBeUndefined()
  })

  it('tells by sync: all neighbours of own keys, the signer alone of others', async () => {
    const [alice, bob] = [await signedPerson(), await signedPerson()]
    const room = await watcher.createRoom({ preset: 'public_chat' })
    for (const { person } of [alice, bob]) await person.join(room)
    const people = [alice.person, bob.person, watcher]
    const tokens = await Promise.all(people.map(async (person) => (await person.sync()).next_batch))
    const shown = async () => {
      const answers = await Promise.all(people.map((person, index) => person.sync(`&since=${tokens[index]}`)))
      answers.forEach(({ next_batch }, index) => {
        tokens[index] = next_batch
      })
      return answers.map((answer) => listsOf(answer).changed)
    }
    const ofBob = signedBy(bob.signer.object('master'), alice.person.userId, alice.signer.keys.user_signing)
    await sign(alice.person, { [bob.person.userId]: { [bob.signer.keys.master.publicKey]: ofBob } })
    expect(await shown()).toEqual([idsOfPeople(bob.person), [], []])
    const device = signedBy(bob.person.maker.identity(), bob.person.userId, bob.signer.keys.self_signing)
    await sign(bob.person, { [bob.person.userId]: { [bob.person.deviceId]: device } })
    const all = [1, 2, 3].map(() => idsOfPeople(bob.person))
    expect(await shown()).toEqual(all)
    await sign(bob.person, { [bob.person.userId]: { [bob.person.deviceId]: device } })
    expect(await shown()).toEqual([[], [], []])
    await bob.person.call('POST', PATH, withPassword(bob.person, crossSigner(bob.person.userId).body()))
    expect(await shown()).toEqual(all)
  })

  it('says of each key what is wrong with it, and takes the others', async () => {
    const { person, signer } = await signedPerson()
    const other = await signedPerson()
    const { userId, deviceId, maker } = person
    const good = signedBy(maker.identity(), userId, signer.keys.self_signing)
    const master = signer.keys.master.publicKey
    const bad = { ...signer.object('master'), signatures: { [userId]: { [`ed25519:${deviceId}`]: 'AAAA' } } }
    const answer = await sign(person, {
      [userId]: {
        [deviceId]: good,
        [master]: bad,
        NOSUCH: good,
        __proto__x: good,
        constructor: good,
        [signer.keys.self_signing.publicKey]: signedBy(signer.object('self_signing'), userId, maker.key),
      },
      [other.person.userId]: {
        [other.person.deviceId]: signedBy(other.person.maker.identity(), userId, signer.keys.user_signing),
        [other.signer.keys.master.publicKey]: signedBy(other.signer.object('master'), userId, signer.keys.master),
      },
      '@nobody:localhost': { x: good },
      '@eve:elsewhere.test': { x: good },
    })
    const codes = Object.fromEntries(
      Object.entries<Json>(answer.failures).map(([user, keys]) => [
        user,
        Object.fromEntries(Object.entries<Json>(keys).map(([key, error]) => [key, error.errcode])),
      ]),
    )
    const expected: Record<string, Record<string, string>> = {
      [userId]: {
        [master]: 'M_INVALID_SIGNATURE',
        NOSUCH: 'M_NOT_FOUND',
        __proto__x: 'M_NOT_FOUND',
        constructor: 'M_NOT_FOUND',
        [signer.keys.self_signing.publicKey]: 'M_NOT_FOUND',
      },
      [other.person.userId]: {
        [other.person.deviceId]: 'M_NOT_FOUND',
        [other.signer.keys.master.publicKey]: 'M_INVALID_SIGNATURE',
      },
      '@nobody:localhost': { x: 'M_NOT_FOUND' },
      '@eve:elsewhere.test': { x: 'M_NOT_FOUND' },
    }
    expect(codes).toEqual(expected)
    const seen = (await query(watcher, person)).device_keys[userId][deviceId]
    expect(Object.keys(seen.signatures[userId])).toContain(signer.keys.self_signing.keyId)
  })

  it('refuses an object that is not the one that was uploaded, and what is none', async () => {
    const { person, signer } = await signedPerson()
    const changed = signedBy({ ...person.maker.identity(), more: 1 }, person.userId, signer.keys.self_signing)
    for (const object of [changed, [], 'x', null, 1]) {
      const answer = await sign(person, { [person.userId]: { [person.deviceId]: object } })
      expect(answer.failures[person.userId][person.deviceId].errcode).toBe('M_INVALID_PARAM')
    }
    for (const body of [[], { nobody: {} }, { [person.userId]: [] }]) {
      expect((await person.ask('POST', '/keys/signatures/upload', body)).status).toBe(400)
    }
  })

  it('forgets signatures with the key that made them, and with the device', async () => {
    const { person, signer } = await signedPerson()
    const { userId } = person
    const second = await login(house.api, userId)
    const maker = deviceMaker(second)
    const asSecond = (path: string, body: object) => house.api.call('POST', path, { token: second.token, body })
    await asSecond('/keys/upload', { device_keys: maker.identity() })
    const master = signer.keys.master.publicKey
    await sign(person, {
      [userId]: {
        [second.deviceId]: signedBy(maker.identity(), userId, signer.keys.self_signing),
        [master]: signedBy(signer.object('master'), userId, maker.key),
      },
    })
    expect(Object.keys((await masterSeen(watcher, person)).signatures[userId])).toEqual([`ed25519:${second.deviceId}`])
    await person.call(
      'POST',
      PATH,
      withPassword(person, {
        self_signing_key: signJson(crossSigner(userId).object('self_signing'), userId, signer.keys.master),
      }),
    )
    const device = (await query(watcher, person)).device_keys[userId][second.deviceId]
    expect(Object.keys(device.signatures[userId])).toEqual([`ed25519:${second.deviceId}`])
    await asSecond('/logout', {})
    expect((await masterSeen(watcher, person)).signatures).toBeUndefined()
  })
})

it.each(['/_matrix/client/unstable', '/_matrix/client/r0', '/_proto/client/unstable'])(
  'serves cross-signing under %s',
  async (root) => {
    expect((await watcher.ask('POST', `${root}/keys/signatures/upload`, {})).body).toEqual({ failures: {} })
    const { status } = await watcher.ask('POST', `${root}${PATH}`, {})
    expect(status).toBe(root.includes('proto') ? 401 : 200)
  },
)
