import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Pdu } from '../../src/core/event/format.ts'
import { POLICY_KEY_ID } from '../../src/core/event/policy.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import { signedEventText } from '../../src/core/signing/event-hash.ts'
import { signingKeyFromSeed, verifySignature } from '../../src/core/signing/key.ts'
import {
  MAX_POLICY_REQUESTS_AT_ONCE,
  MAX_POLICY_ROUNDS,
  POLICY_SERVER_PAUSE_MS,
} from '../../src/domain/limits/policy-servers.ts'
import { type Account, type Json, sendText } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { json, proxyTo } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

/** Two servers, and a third whose front answers as a policy server. */
let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let guardian: Neighbour
let alice: Account
let bob: Account
let guard: Account
let room: string
let version = '11'
let sent = 0
/** How far the servers' clocks are ahead. */
let skewMs = 0

const key = signingKeyFromSeed(POLICY_KEY_ID, randomBytes(32))
const enc = encodeURIComponent
const SPAM = { errcode: 'M_FORBIDDEN', error: 'The message appears to contain possible spam' }
type Asked = { readonly origin: string; readonly path: string; readonly event: Json }
let asked: Asked[] = []
type Verdict = { readonly status: number; readonly body: object }
/** What the policy server says; undefined for a signature. */
let judge: (one: Asked) => Verdict | undefined | Promise<Verdict | undefined>

const refuseSpam = ({ event }: Asked): Verdict | undefined =>
  JSON.stringify(event.content).includes('spam') ? { status: 400, body: SPAM } : undefined

beforeAll(async () => {
  street = openNeighbourhood({ clock: { now: () => Date.now() + skewMs } })
  ;[alpha, beta, guardian] = await Promise.all([street.open(), street.open(), street.open()])
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
  guard = await guardian.person('guard')
  const pass = proxyTo(guardian.server.baseUrl)
  guardian.front.handler = (request, response) => {
    if (!request.url.endsWith('/sign')) return pass(request, response)
    const event = JSON.parse(request.body) as Pdu
    const origin = /origin="?([^",]+)/.exec(String(request.headers.authorization))![1]!
    const one = { origin, path: request.url, event }
    asked.push(one)
    void Promise.resolve(judge(one)).then((verdict) => {
      const signature = key.sign(signedEventText(roomVersion(version)!, event))
      const body = verdict?.body ?? { [guardian.name]: { [POLICY_KEY_ID]: signature } }
      json(body, verdict?.status ?? 200)(request, response)
    })
  }
})

afterAll(() => street.close())

const POLICY = () => ({ via: guardian.name, public_keys: { ed25519: key.publicKey } })
const setState = (type: string, content: object, stateKey = '', of = room) =>
  alpha.api.request('PUT', `/rooms/${enc(of)}/state/${type}/${enc(stateKey)}`, { token: alice.token, body: content })
const say = (at: Neighbour, { token }: Account, text: string, of = room) =>
  sendText(at.api, token, of, `t${sent++}`, text)
const trySay = (at: Neighbour, { token }: Account, text: string, of = room) =>
  at.api.request('PUT', `/rooms/${enc(of)}/send/m.room.message/t${sent++}`, {
    token,
    body: { msgtype: 'm.text', body: text },
  })
const join = (at: Neighbour, { token }: Account, of = room) =>
  at.api.call('POST', `/join/${enc(of)}?server_name=${enc(alpha.name)}`, { token, body: {} })

async function textsAt(at: Neighbour, { token }: Account, of = room): Promise<string[]> {
  const { chunk } = await at.api.call('GET', `/rooms/${enc(of)}/messages?dir=b&limit=100`, { token })
  return chunk.flatMap(({ content }: Json) => content.body ?? []).reverse()
}
const heard = (at: Neighbour, who: Account, text: string) =>
  waitUntil(`${text} at ${at.name}`, async () => (await textsAt(at, who)).includes(text))

async function storedAt(at: Neighbour, eventId: string): Promise<Json> {
  const [row] = await at.server.database.db.query<{ json: string; standing: string | null }>(
    'SELECT json, standing FROM event WHERE event_id = $1',
    [eventId],
  )
  return row && { ...JSON.parse(row.json), standing: row.standing }
}

const makeRoom = async () =>
  (
    await alpha.api.call('POST', '/createRoom', {
      token: alice.token,
      body: { preset: 'public_chat', room_version: version },
    })
  ).room_id as string

/** A room with all three, whose policy server is in force. */
async function open(of = '11'): Promise<void> {
  // What failed before is forgotten.
  skewMs += POLICY_SERVER_PAUSE_MS
  version = of
  judge = () => undefined
  room = await makeRoom()
  await join(beta, bob)
  await join(guardian, guard)
  expect((await setState('m.room.policy', POLICY())).status).toBe(200)
  await waitUntil('the policy', async () => {
    const path = `/rooms/${enc(room)}/state/m.room.policy`
    return (await beta.api.request('GET', path, { token: bob.token })).status === 200
  })
  judge = refuseSpam
  asked = []
}

describe.each(['1', '6', '11', '12'])('in a room of version %s with a policy server', (of) => {
  beforeAll(() => open(of))
  beforeEach(() => {
    asked = []
    judge = refuseSpam
  })

  it('each event is signed before it is sent, and not asked about again', async () => {
    const id = await say(alpha, alice, 'hello')
    await heard(beta, bob, 'hello')
    expect(asked.map(({ origin, path }) => [origin, path])).toEqual([[alpha.name, '/_matrix/policy/v1/sign']])
    for (const at of [alpha, beta]) {
      const { standing, ...pdu } = await storedAt(at, id)
      expect(standing).toBeNull()
      expect(Object.keys(pdu.signatures).sort()).toEqual([alpha.name, guardian.name].sort())
      const text = signedEventText(roomVersion(version)!, pdu)
      expect(verifySignature(key.publicKey, text, pdu.signatures[guardian.name][POLICY_KEY_ID])).toBe(true)
    }
    await say(beta, bob, 'and back')
    await heard(alpha, alice, 'and back')
    expect(asked.map(({ origin }) => origin)).toEqual([alpha.name, beta.name])
  })

  it('what it refuses fails with its own words, and is nowhere', async () => {
    const answers = await Promise.all([
      trySay(alpha, alice, 'spam'),
      setState('m.room.topic', { topic: 'spam' }),
      setState('m.room.member', { membership: 'join', displayname: 'spam' }, alice.userId),
      setState('m.room.policy', { ...POLICY(), spam: 1 }, 'not empty'),
    ])
    for (const answer of answers) expect(answer).toEqual({ status: 400, body: SPAM })
    expect(await textsAt(alpha, alice)).not.toContain('spam')
    await say(alpha, alice, 'after')
    await heard(beta, bob, 'after')
    expect(await textsAt(beta, bob)).not.toContain('spam')
  })

  it('an event that came without a signature is asked about once, and hidden if refused', async () => {
    // The policy server's own homeserver asks nobody.
    const bad = await say(guardian, guard, 'spam by the guard')
    const good = await say(guardian, guard, 'a word by the guard')
    await heard(alpha, alice, 'a word by the guard')
    await heard(beta, bob, 'a word by the guard')
    expect(asked.map(({ origin }) => origin).sort()).toEqual([alpha.name, alpha.name, beta.name, beta.name].sort())
    expect(await textsAt(alpha, alice)).not.toContain('spam by the guard')
    expect((await storedAt(alpha, bad)).standing).toBe('soft-failed')
    const kept = await storedAt(alpha, good)
    expect(Object.keys(kept.signatures[guardian.name])).toContain(guardian.signingKey.keyId)
    await say(alpha, alice, 'still here')
    await heard(guardian, guard, 'still here')
  })

  it('many events at once are all signed', async () => {
    const texts = Array.from({ length: 12 }, (_, i) => `${of} many ${i}`)
    await Promise.all(texts.flatMap((text, i) => (i % 2 ? say(alpha, alice, text) : say(beta, bob, text))))
    for (const text of texts)
      for (const [at, who] of [
        [alpha, alice],
        [beta, bob],
      ] as const)
        await heard(at, who, text)
  })
})

describe('a policy server', () => {
  it('that is away makes sending fail, and can be done without', async () => {
    await open()
    judge = () => ({ status: 503, body: {} })
    const failed = await trySay(alpha, alice, 'lost')
    expect([failed.status, failed.body.errcode]).toEqual([502, 'M_UNKNOWN'])
    // What waits behind it fails with it, without a request of its own.
    expect((await trySay(alpha, alice, 'lost too')).status).toBe(502)
    expect(asked).toHaveLength(1)
    expect((await setState('m.room.policy', {})).status).toBe(200)
    await say(alpha, alice, 'free')
    expect(asked).toHaveLength(1)
    await heard(beta, bob, 'free')
    expect(await textsAt(alpha, alice)).not.toContain('lost')
  })

  it('that is slow holds up no other room, and no event that does without it', async () => {
    await open()
    let release: (() => void) | undefined
    const gate = new Promise<void>((go) => {
      release = go
    })
    judge = async () => {
      await gate
      return undefined
    }
    const slow = trySay(alpha, alice, 'slow')
    await waitUntil('the question', () => asked.length > 0)
    const other = await makeRoom()
    await say(alpha, alice, 'elsewhere', other)
    expect((await setState('m.room.policy', {})).status).toBe(200)
    release?.()
    expect((await slow).status).toBe(200)
    expect(await textsAt(alpha, alice)).toContain('slow')
  })

  it.each([
    ['nothing', () => ({})],
    ['no signature of its own', () => ({ [alpha.name]: { [POLICY_KEY_ID]: key.sign('x') } })],
    ['a wrong signature', () => ({ [guardian.name]: { [POLICY_KEY_ID]: key.sign('x') } })],
    ['a signature by another key', () => ({ [guardian.name]: { 'ed25519:other': key.sign('x') } })],
  ])('that answers with %s has refused', async (_, body) => {
    await open()
    judge = () => ({ status: 200, body: body() })
    const { status, body: answer } = await trySay(alpha, alice, 'unsigned')
    expect([status, answer.errcode]).toEqual([403, 'M_FORBIDDEN'])
  })

  it.each([
    [404, 'M_NOT_FOUND', 404],
    [429, 'M_LIMIT_EXCEEDED', 429],
    [403, 'M_FORBIDDEN', 403],
    // That would end the client's session.
    [401, 'M_UNKNOWN_TOKEN', 502],
  ])('that answers %s %s has its error passed on with %s', async (status, errcode, expected) => {
    await open()
    judge = () => ({ status, body: { errcode, error: 'in its words' } })
    const answer = await trySay(alpha, alice, 'x')
    expect(answer.status).toBe(expected)
    if (expected === status) expect(answer.body).toMatchObject({ errcode, error: 'in its words' })
  })

  it('is asked before another server is told of an invitation', async () => {
    await open()
    const carol = await beta.person('carol')
    judge = () => ({ status: 400, body: SPAM })
    const invite = { token: alice.token, body: { user_id: carol.userId } }
    expect(await alpha.api.request('POST', `/rooms/${enc(room)}/invite`, invite)).toEqual({ status: 400, body: SPAM })
    const { rooms } = await beta.api.call('GET', '/sync?timeout=0', { token: carol.token })
    expect(Object.keys(rooms?.invite ?? {})).toEqual([])
    judge = () => undefined
    await alpha.api.call('POST', `/rooms/${enc(room)}/invite`, invite)
    await join(beta, carol)
  })

  it('that refuses a tombstone keeps the room from being upgraded', async () => {
    await open()
    judge = ({ event }) => (event.type === 'm.room.tombstone' ? { status: 400, body: SPAM } : undefined)
    const call = { token: alice.token, body: { new_version: '12' } }
    expect(await alpha.api.request('POST', `/rooms/${enc(room)}/upgrade`, call)).toEqual({ status: 400, body: SPAM })
    expect(await alpha.server.database.db.query('SELECT FROM room_upgrade')).toEqual([])
    judge = () => undefined
    const { replacement_room } = await alpha.api.call('POST', `/rooms/${enc(room)}/upgrade`, call)
    await join(beta, bob, replacement_room)
  })

  it('may be named as the proposal did', async () => {
    await open()
    await setState('m.room.policy', {})
    const other = await makeRoom()
    await join(guardian, guard, other)
    const content = { via: guardian.name, public_key: key.publicKey }
    expect((await setState('org.matrix.msc4284.policy', content, '', other)).status).toBe(200)
    expect(asked).toEqual([])
    await say(alpha, alice, 'proposed', other)
    expect(asked.map(({ path }) => path)).toEqual(['/_matrix/policy/unstable/org.matrix.msc4284/sign'])
    expect(await trySay(alpha, alice, 'spam', other)).toEqual({ status: 400, body: SPAM })
  })

  it.each<[string, () => object]>([
    ['has nobody in the room', () => ({ ...POLICY(), via: beta.name })],
    ['is this server', () => ({ ...POLICY(), via: alpha.name })],
    ['has no name', () => ({ public_keys: { ed25519: key.publicKey } })],
    ['has a malformed name', () => ({ ...POLICY(), via: 'no server' })],
    ['has a name that is no text', () => ({ ...POLICY(), via: 7 })],
    ['has no key', () => ({ via: guardian.name, public_keys: { rsa: 'x' } })],
    ['has a key that is no text', () => ({ via: guardian.name, public_keys: { ed25519: 7 } })],
  ])('that %s is none', async (_, content) => {
    version = '11'
    asked = []
    judge = refuseSpam
    const other = await makeRoom()
    await join(guardian, guard, other)
    await setState('m.room.policy', content(), '', other)
    await say(alpha, alice, 'spam', other)
    expect(asked).toEqual([])
  })

  it('gets a bounded number of requests at a time', async () => {
    await open()
    const rooms = await Promise.all(Array.from({ length: MAX_POLICY_REQUESTS_AT_ONCE + 8 }, makeRoom))
    for (const each of rooms) {
      await join(guardian, guard, each)
      await setState('m.room.policy', POLICY(), '', each)
    }
    let running = 0
    let most = 0
    let release: (() => void) | undefined
    const gate = new Promise<void>((go) => {
      release = go
    })
    judge = async () => {
      most = Math.max(most, ++running)
      await gate
      running--
      return undefined
    }
    const sending = Promise.all(rooms.map((each) => say(alpha, alice, 'x', each)))
    await waitUntil('the first', () => running === MAX_POLICY_REQUESTS_AT_ONCE)
    release?.()
    await sending
    expect(most).toBe(MAX_POLICY_REQUESTS_AT_ONCE)
  })

  it('is not asked for ever when others always come first', async () => {
    await open()
    let rounds = 0
    judge = async ({ event }) => {
      if (event.sender !== alice.userId) return undefined
      const text = `before ${rounds++}`
      await say(guardian, guard, text)
      await heard(alpha, alice, text)
      return undefined
    }
    expect((await trySay(alpha, alice, 'never')).status).toBe(503)
    expect(rounds).toBe(MAX_POLICY_ROUNDS)
    judge = () => undefined
    await say(alpha, alice, 'at last')
    await heard(beta, bob, 'at last')
  })
})
