import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import type { ServerName } from '../../src/core/ids.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { EVERY_SERVER_WELCOME } from '../../src/core/server-policy.ts'
import { signJson } from '../../src/core/signing/json-signature.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { createKeyRing } from '../../src/domain/federation/key-ring.ts'
import { createKeySources } from '../../src/domain/federation/key-sources.ts'
import { createOwnKeys } from '../../src/domain/federation/own-keys.ts'
import { MAX_KEY_REQUESTS_AT_ONCE, MAX_KEYS_PER_SERVER } from '../../src/domain/limits.ts'
import type { KeyRing } from '../../src/domain/rooms/receive/federation-queries.ts'
import { createDiscovery } from '../../src/outbound/discovery.ts'
import { createFederation } from '../../src/outbound/federation.ts'
import { createKeyFetcher } from '../../src/outbound/server-keys.ts'
import { createWellKnown } from '../../src/outbound/well-known.ts'
import { forgetServerKeys, saveServerKeys } from '../../src/store/federation/server-keys.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Outside, openOutside, outboundConfig } from '../support/outside.ts'
import { keptInMemory } from '../support/server.ts'
import { json, startTlsServer, type TlsServer } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

const MINUTE = 60_000
const WEEK = 7 * 24 * 60 * MINUTE
const OWN = 'own.test' as ServerName

const key = (version: string): SigningKey => signingKeyFromSeed(`ed25519:${version}`, randomBytes(32))
const [current, other, old, own, notaryKey] = ['a', 'b', 'old', 'own', 'n'].map(key) as [
  SigningKey,
  SigningKey,
  SigningKey,
  SigningKey,
  SigningKey,
]

/** The first 32 bytes that Go's generator gives with seed 0. */
const exposed = signingKeyFromSeed(
  'ed25519:x',
  Buffer.from('0194fdc2fa2ffcc041d3ff12045b73c86e4ff95ff662a5eee82abdf44a2d0b75', 'hex'),
)

let outside: Outside
let database: TestDatabase
let origin: TlsServer
let notary: TlsServer
let name: ServerName
let notaryName: ServerName
let ring: KeyRing
let now = Date.now()
/** Each test has a server of its own, by a name of its own. */
let count = 0

beforeAll(async () => {
  outside = await openOutside()
  database = await createTestDatabase()
  const hosts = Array.from({ length: 60 }, (_, index) => `s${index}.test`)
  const certificate = outside.authority.issue(hosts)
  for (const host of hosts) outside.dns.zones.set(host, { addresses: ['127.0.0.1'] })
  origin = await startTlsServer(certificate, json({}))
  notary = await startTlsServer(certificate, json({}))
})
afterAll(async () => {
  await Promise.all([origin.close(), notary.close()])
  await outside.close()
  await database.drop()
})
beforeEach(() => {
  count++
  name = `s${count}.test:${origin.port}` as ServerName
  notaryName = `s${count}.test:${notary.port}` as ServerName
  origin.requests.length = 0
  notary.requests.length = 0
  ring = openRing()
})

/** The servers that were asked for their own keys, and have answered or failed. */
const askedThemselves = new Set<string>()

function openRing(key_servers: readonly ServerName[] = []): KeyRing {
  const { client, names } = outside
  const clock = { now: () => now }
  const wellKnown = createWellKnown({ client, now: clock.now, dialects: ['matrix'] })
  const discovery = createDiscovery({ names, wellKnown, now: clock.now, random: Math.random })
  const federation = createFederation({
    client,
    discovery,
    dialects: ['matrix'],
    sign: () => '',
    policy: EVERY_SERVER_WELCOME,
  })
  const fetcher = createKeyFetcher(federation)
  const config = { server_name: OWN, ...outboundConfig({ key_servers }) }
  const log = pino({ level: 'silent' })
  return createKeyRing({
    config,
    db: database.db,
    clock,
    signingKey: keptInMemory(own),
    fetcher: { ...fetcher, own: (server) => fetcher.own(server).finally(() => askedThemselves.add(server)) },
    log,
  })
}

/** What a server says of its keys, unsigned. */
function said(values: JsonObject = {}): JsonObject {
  return {
    server_name: name,
    verify_keys: { [current.keyId]: { key: current.publicKey } },
    old_verify_keys: { [old.keyId]: { key: old.publicKey, expired_ts: 1_000 } },
    valid_until_ts: now + 60 * MINUTE,
    ...values,
  }
}
const signed = (values: JsonObject = {}, by: SigningKey = current): JsonObject => signJson(said(values), name, by)
const keysOf = (...keyIds: string[]) => ring.keysOf(name, keyIds)
const down = json({ errcode: 'M_UNKNOWN' }, 503)

describe('the keys of another server', () => {
  test('are fetched once, and kept in memory and in the database', async () => {
    origin.handler = json(signed())
    const found = await keysOf(current.keyId)
    expect(found).toMatchObject([
      { keyId: current.keyId, publicKey: current.publicKey, validUntilTs: now + 60 * MINUTE },
    ])
    expect(origin.requests).toMatchObject([{ method: 'GET', url: '/_matrix/key/v2/server' }])
    expect(await keysOf(current.keyId)).toEqual(found)
    ring = openRing()
    expect(await keysOf(current.keyId)).toEqual(found)
    expect(origin.requests).toHaveLength(1)
  })

  test('are fetched once for many that ask at the same time', async () => {
    origin.handler = json(signed())
    const found = await Promise.all(Array.from({ length: 100 }, () => keysOf(current.keyId)))
    expect(found.every(([each]) => each?.publicKey === current.publicKey)).toBe(true)
    expect(origin.requests).toHaveLength(1)
  })

  test('are given under the ids that were asked for alone', async () => {
    origin.handler = json(
      signed({ verify_keys: { 'ed25519:a': { key: current.publicKey }, 'ed25519:b': { key: other.publicKey } } }),
    )
    expect((await keysOf('ed25519:b')).map(({ keyId }) => keyId)).toEqual(['ed25519:b'])
    expect(await keysOf('ed25519:missing')).toEqual([])
  })

  test('count for seven days at most', async () => {
    origin.handler = json(signed({ valid_until_ts: now + 10 * WEEK }))
    expect(await keysOf(current.keyId)).toMatchObject([{ validUntilTs: now + WEEK }])
  })

  test('that are old count up to when they expired, and are not asked for again', async () => {
    origin.handler = json(signed())
    expect(await keysOf(old.keyId)).toMatchObject([{ publicKey: old.publicKey, validUntilTs: 1_000 }])
    now += WEEK
    await keysOf(old.keyId)
    expect(origin.requests).toHaveLength(1)
  })

  test('that have run out are fetched again', async () => {
    origin.handler = json(signed())
    await keysOf(current.keyId)
    now += 61 * MINUTE
    origin.handler = json(signed())
    expect(await keysOf(current.keyId)).toMatchObject([{ validUntilTs: now + 60 * MINUTE }])
    expect(origin.requests).toHaveLength(2)
  })

  test('that went out of use count up to then', async () => {
    origin.handler = json(signed())
    await keysOf(current.keyId)
    now += 61 * MINUTE
    const old_verify_keys = { [current.keyId]: { key: current.publicKey, expired_ts: 5_000 } }
    origin.handler = json(signed({ verify_keys: { [other.keyId]: { key: other.publicKey } }, old_verify_keys }, other))
    expect(await keysOf(current.keyId)).toMatchObject([{ validUntilTs: 5_000 }])
  })

  test('of which there are very many are kept in part', async () => {
    const many = (from: number) =>
      Object.fromEntries(
        Array.from({ length: 300 }, (_, index) => [
          `ed25519:${from + index}`,
          { key: old.publicKey, expired_ts: from },
        ]),
      )
    for (const from of [1_000, 2_000, 3_000]) {
      origin.handler = json(signed({ old_verify_keys: many(from) }))
      await keysOf('ed25519:missing')
      now += 6 * MINUTE
    }
    const rows = await database.db.query('SELECT valid_until FROM server_key WHERE server_name = $1', [name])
    expect(rows).toHaveLength(MAX_KEYS_PER_SERVER)
    expect(await keysOf(current.keyId)).toHaveLength(1)
  })
})

describe('answers that are not believed', () => {
  const twice = (by: SigningKey): JsonObject => {
    const verify_keys = { [current.keyId]: { key: current.publicKey }, [by.keyId]: { key: by.publicKey } }
    const good = signed({ verify_keys })
    return {
      ...good,
      signatures: { [name]: { ...((good.signatures as JsonObject)[name] as JsonObject), [by.keyId]: own.sign('no') } },
    }
  }
  it.each<[string, () => unknown]>([
    ['unsigned', () => said()],
    ['signed by a key that it does not list', () => signed({}, other)],
    ['signed under the id of its key by another', () => signed({}, signingKeyFromSeed(current.keyId, randomBytes(32)))],
    ['signed by an old key alone', () => signed({}, old)],
    ['with one good signature and one bad', () => twice(other)],
    ['changed after it was signed', () => ({ ...signed(), valid_until_ts: now + WEEK })],
    [
      'with a key added after it was signed',
      () => {
        const { verify_keys, ...rest } = signed()
        return { ...rest, verify_keys: { ...(verify_keys as JsonObject), 'ed25519:x': { key: other.publicKey } } }
      },
    ],
    [
      'security row 13: with a key whose secret half everybody has',
      () => signed({ verify_keys: { [exposed.keyId]: { key: `${exposed.publicKey}=` } } }, exposed),
    ],
    ['of another server', () => signJson(said({ server_name: 'evil.test' }), 'evil.test', current)],
    ['of another server, signed as this one', () => signed({ server_name: 'evil.test' })],
    ['without an end', () => signed({ valid_until_ts: null })],
    ['with an end that is text', () => signed({ valid_until_ts: '9999999999999' })],
    ['with an end before all time', () => signed({ valid_until_ts: -1 })],
    ['without keys', () => signed({ verify_keys: {} })],
    ['with keys that are no keys', () => signed({ verify_keys: { [current.keyId]: { key: 'AAAA' } } })],
    ['with keys of another kind', () => signed({ verify_keys: { 'rsa:a': { key: current.publicKey } } })],
    ['a list', () => []],
    ['null', () => null],
    ['longer than 50 KiB', () => signed({ more: 'x'.repeat(51_200) })],
  ])('security row F, forged key answers: %s', async (_what, answer) => {
    origin.handler = json(answer())
    expect(await keysOf(current.keyId, 'ed25519:x')).toEqual([])
    expect(await database.db.query('SELECT FROM server_key WHERE server_name = $1', [name])).toEqual([])
  })

  test('do not take away what was known', async () => {
    origin.handler = json(signed())
    const found = await keysOf(current.keyId)
    now += 61 * MINUTE
    origin.handler = json(signed({ verify_keys: { [current.keyId]: { key: other.publicKey } } }, other))
    expect(await keysOf(current.keyId)).toEqual(found)
    expect(origin.requests).toHaveLength(2)
  })
})

describe('how often a server is asked', () => {
  test('at once for a key that is new, and less and less for keys that it does not have', async () => {
    origin.handler = json(signed())
    await keysOf(current.keyId)
    origin.handler = json(signed({ verify_keys: { [other.keyId]: { key: other.publicKey } } }, other))
    expect(await keysOf(other.keyId)).toHaveLength(1)
    expect(origin.requests).toHaveLength(2)
    const begun = now
    const asked: number[] = []
    for (; now - begun < 15 * MINUTE; now += 5_000) {
      const before = origin.requests.length
      await keysOf(`ed25519:made_up_${now}`)
      if (origin.requests.length > before) asked.push((now - begun) / 1_000)
    }
    expect(asked).toEqual([0, 10, 30, 70, 150, 310, 610])
  })

  test('less and less while it fails, once an hour at least; then as before', async () => {
    origin.handler = down
    const begun = now
    const asked: number[] = []
    for (; now - begun < 5 * 60 * MINUTE; now += MINUTE) {
      const before = origin.requests.length
      expect(await keysOf(current.keyId)).toEqual([])
      if (origin.requests.length > before) asked.push((now - begun) / MINUTE)
    }
    expect(asked).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243])
    origin.handler = json(signed())
    now += 5 * MINUTE
    expect(await keysOf(current.keyId)).toHaveLength(1)
  })
})

test('servers that do not answer hold up no other', async () => {
  const asked: string[] = []
  const hanging = new AbortController()
  const never = new Promise<undefined>((resolve) => hanging.signal.addEventListener('abort', () => resolve(undefined)))
  const own = (server: string): Promise<JsonObject | undefined> => {
    asked.push(server)
    return server.startsWith('silent') ? never : Promise.resolve(undefined)
  }
  const sources = createKeySources({
    ...{ keyServers: [], clock: { now: () => now }, keysOf: async () => [] },
    fetcher: { own, byNotary: async () => [] },
  })
  const stuck = Array.from({ length: MAX_KEY_REQUESTS_AT_ONCE + 5 }, (_, n) =>
    sources.ask(`silent${n}` as ServerName, []),
  )
  const begun = performance.now()
  await sources.ask('healthy' as ServerName, [])
  expect(performance.now() - begun).toBeLessThan(25_000)
  // All at once they would be too many.
  expect(asked.indexOf('healthy')).toBe(MAX_KEY_REQUESTS_AT_ONCE + 5)
  hanging.abort()
  await Promise.all(stuck)
})

test('our own keys are known without asking', async () => {
  expect(await ring.keysOf(OWN, [own.keyId, 'ed25519:x'])).toEqual([
    { keyId: own.keyId, publicKey: own.publicKey, validUntilTs: now + WEEK, isOld: false },
  ])
})

test('what we publish of our own is believed by others', async () => {
  const config = { server_name: name }
  origin.handler = json(
    createOwnKeys({ config, clock: { now: () => now }, signingKey: keptInMemory(current) }).published(),
  )
  const [found] = await keysOf(current.keyId)
  expect(found).toMatchObject({ publicKey: current.publicKey, validUntilTs: now + 24 * 60 * MINUTE })
})

describe('key servers', () => {
  const OTHERS = ['x1', 'x2', 'x3', 'x4', 'x5'].map((each) => `${each}.gone.test` as ServerName)
  const passedOn = (answer: JsonObject, by = notaryKey) => signJson(answer, notaryName, by)

  beforeEach(() => {
    ring = openRing([notaryName])
    origin.handler = down
  })

  /** The notary publishes its own key, and answers every query with this. */
  function telling(answer: () => JsonObject): void {
    const ownAnswer = {
      ...said(),
      server_name: notaryName,
      verify_keys: { [notaryKey.keyId]: { key: notaryKey.publicKey } },
    }
    notary.handler = (request, response) => {
      const body = request.method === 'GET' ? signJson(ownAnswer, notaryName, notaryKey) : { server_keys: [answer()] }
      json(body)(request, response)
    }
  }

  test('are asked for the keys of one that does not answer', async () => {
    telling(() => passedOn(signed()))
    expect(await keysOf(current.keyId)).toMatchObject([{ publicKey: current.publicKey }])
    expect(notary.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'POST /_matrix/key/v2/query',
      'GET /_matrix/key/v2/server',
    ])
    const criteria = { [current.keyId]: { minimum_valid_until_ts: expect.any(Number) } }
    expect(JSON.parse(notary.requests[0]?.body ?? '')).toEqual({ server_keys: { [name]: criteria } })
  })

  test('are not asked when it does', async () => {
    origin.handler = json(signed())
    await keysOf(current.keyId)
    expect(notary.requests).toEqual([])
  })

  it.each<[string, () => JsonObject]>([
    ['without the signature of the key server', () => signed()],
    [
      'with a signature that is not its own',
      () => passedOn(signed(), signingKeyFromSeed(notaryKey.keyId, randomBytes(32))),
    ],
    ['without the signature of the server', () => passedOn(said())],
    ['of another server', () => passedOn(signed({ server_name: 'evil.test' }))],
  ])('are not believed %s', async (_what, answer) => {
    telling(answer)
    expect(await keysOf(current.keyId)).toEqual([])
  })

  test('do not make an old key new', async () => {
    origin.handler = json(
      signed(
        {
          verify_keys: { [other.keyId]: { key: other.publicKey } },
          old_verify_keys: { [current.keyId]: { key: current.publicKey, expired_ts: 5_000 } },
        },
        other,
      ),
    )
    expect(await keysOf(current.keyId)).toMatchObject([{ validUntilTs: 5_000 }])
    origin.handler = down
    telling(() => passedOn(signed()))
    now += 61 * MINUTE
    await keysOf(other.keyId)
    expect(await keysOf(current.keyId)).toMatchObject([{ validUntilTs: 5_000 }])
  })

  test('are asked for the keys of many servers in one request, and for each once', async () => {
    telling(() => passedOn(signed()))
    await ring.keysOf(notaryName, [notaryKey.keyId])
    notary.requests.length = 0
    askedThemselves.clear()
    const { handler } = notary
    // Its answers come once all want something of it: two requests may be on their way by then, and the third brings the others.
    const areAllThere = waitUntil(
      'all servers to be asked themselves',
      () => askedThemselves.size === OTHERS.length + 1,
    )
    notary.handler = (request, response) =>
      void areAllThere.then(() => setImmediate()).then(() => handler(request, response))
    const wanted = [name, ...OTHERS].flatMap((server) => [
      ring.keysOf(server, ['ed25519:a']),
      ring.keysOf(server, ['ed25519:a']),
    ])
    expect((await Promise.all(wanted)).map((keys) => keys.length).slice(0, 3)).toEqual([1, 1, 0])
    const queries = notary.requests.map(({ body }) => Object.keys(JSON.parse(body).server_keys))
    expect(queries.length).toBeLessThan(4)
    expect(queries.flat().sort()).toEqual([name, ...OTHERS].sort())
  })

  test('are asked again for a key that others, who asked at the same time, did not want', async () => {
    const answers: Record<string, JsonObject> = {
      [current.keyId]: signed(),
      [other.keyId]: signed({ verify_keys: { [other.keyId]: { key: other.publicKey } } }, other),
    }
    telling(() => passedOn(signed()))
    const { handler } = notary
    notary.handler = (request, response) => {
      if (request.method === 'GET') return handler(request, response)
      const [keyId] = Object.keys(JSON.parse(request.body).server_keys[name])
      json({ server_keys: [passedOn(answers[keyId!]!)] })(request, response)
    }
    const [first, second] = await Promise.all([keysOf(current.keyId), keysOf(other.keyId)])
    expect([first?.length, second?.length]).toEqual([1, 1])
  })

  test('are asked first while many servers are asked at once', async () => {
    telling(() => passedOn(signed()))
    const crowd = Array.from({ length: 20 }, (_, index) => `y${index}.gone.test` as ServerName)
    const waiting = Promise.all(crowd.map((server) => ring.keysOf(server, ['ed25519:a'])))
    expect(await keysOf(current.keyId)).toHaveLength(1)
    expect(origin.requests).toEqual([])
    await waiting
    expect(notary.requests.filter(({ method }) => method === 'POST').length).toBeLessThan(6)
  })

  test('that disagree: the first that knows the key is believed, what it does not know the next one tells', async () => {
    const second = `s${count}.test:${origin.port}` as ServerName
    // The second key server is the origin's machine under another name.
    const secondName = second.replace(/^s\d+/, 's0') as ServerName
    ring = openRing([notaryName, secondName])
    telling(() => passedOn(signed({ old_verify_keys: {} })))
    const fake = signed(
      { verify_keys: { [current.keyId]: { key: other.publicKey }, [other.keyId]: { key: other.publicKey } } },
      other,
    )
    const byOther = {
      server_name: secondName,
      valid_until_ts: now + MINUTE,
      old_verify_keys: {},
      verify_keys: { [own.keyId]: { key: own.publicKey } },
    }
    origin.handler = (request, response) => {
      if (request.headers.host !== secondName) return down(request, response)
      const body =
        request.method === 'GET'
          ? signJson(byOther, secondName, own)
          : { server_keys: [signJson(fake, secondName, own)] }
      json(body)(request, response)
    }
    const found = await keysOf(current.keyId, other.keyId)
    expect(found.map(({ publicKey }) => publicKey)).toEqual([current.publicKey, other.publicKey])
  })

  test('that do not answer either are no reason to wait', async () => {
    ring = openRing([notaryName, name])
    notary.handler = down
    expect(await keysOf(current.keyId)).toEqual([])
    expect(await ring.keysOf(notaryName, ['ed25519:n'])).toEqual([])
  })
})

test('of more servers than are kept, those whose keys ran out first are forgotten first', async () => {
  const rows = Array.from({ length: 5 }, (_, index) => ({
    ...{ server_name: `kept${index}.test` as ServerName, key_id: 'ed25519:a', public_key: current.publicKey },
    ...{ valid_until: 9e15 + index, is_old: false },
  }))
  const { db } = database
  await db.tx((tx) => saveServerKeys(tx, rows, 10))
  const before = (await db.query<{ n: number }>('SELECT count(DISTINCT server_name)::int AS n FROM server_key'))[0]!.n
  expect(await db.tx((tx) => forgetServerKeys(tx, 3, 2))).toBe(2)
  expect(await db.tx((tx) => forgetServerKeys(tx, 3, 1_000))).toBe(before - 5)
  const left = await db.query<{ server_name: string }>('SELECT server_name FROM server_key ORDER BY 1')
  expect(left.map(({ server_name }) => server_name)).toEqual(['kept2.test', 'kept3.test', 'kept4.test'])
})
