import type { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MAX_HELD_SYNCS_PER_DEVICE } from '../../src/domain/limits.ts'
import { deviceMaker } from '../keys/key-maker.ts'
import {
  type Account,
  type Api,
  createRoom,
  type Json,
  join,
  login,
  openApi,
  PASSWORD,
  register,
  sendText,
} from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'

/** Syncs at a node that stands by: it answers and holds those without news, and whatever is news reaches them. */

let server: TestServer
/** The node that serves. Everything that changes something is asked of it. */
let api: Api
let alice: Account
let bob: Account
let room: string
let servingIds: string
let count = 0

/** Longer than any test here: what ends earlier was ended, or has news. */
const HELD_MS = 60_000
const enc = encodeURIComponent

const idsOf = (answer: Response) => answer.headers.get('x-request-id')?.split('-')[0] ?? ''

interface Synced {
  readonly status: number
  readonly body: Json
  /** Whether the node that stands by made the answer itself. */
  readonly isOwn: boolean
}

async function sync(token: string, query: string, signal?: AbortSignal): Promise<Synced> {
  const url = `${server.standbyUrl}/_matrix/client/v3/sync?${query}`
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` }, ...(signal && { signal }) })
  return { status: answer.status, body: await answer.json(), isOwn: idsOf(answer) !== servingIds }
}

async function levelOf(name: string): Promise<number> {
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(await server.standbyMetrics())?.[1])
}
const heldThere = () => levelOf('hearth_waiting_syncs')

/** Where a device goes on that has everything. */
async function upToDate({ token }: Pick<Account, 'token'>): Promise<string> {
  let since = (await api.call('GET', '/sync', { token })).next_batch as string
  for (;;) {
    const { next_batch } = await api.call('GET', `/sync?since=${since}`, { token })
    if (next_batch === since) return since
    since = next_batch
  }
}

/** A sync that the node that stands by holds by the time this gives it. */
async function hold(token: string, since: string, more = '') {
  const before = await heldThere()
  const leaving = new AbortController()
  const answer = sync(token, `timeout=${HELD_MS}&since=${since}${more}`, leaving.signal)
  // A test that fails does not await it.
  answer.catch(() => {})
  await waitUntil('a sync that is held', async () => (await heldThere()) > before)
  return { answer, leave: () => leaving.abort() }
}

const call = (by: Account, method: string, path: string, body: Json = {}) =>
  api.call(method, path, { token: by.token, body })
const say = (text: string) => sendText(api, alice.token, room, `say${++count}`, text)

/** Threads that were begun in this process. */
const threads: Worker[] = []
const begun = (thread: Worker) => void threads.push(thread)

beforeAll(async () => {
  process.on('worker', begun)
  server = await startServer({}, { hasStandby: true })
  api = openApi(server.baseUrl)
  servingIds = idsOf(await fetch(`${server.baseUrl}/_matrix/client/versions`))
  alice = await register(api, 'alice')
  bob = await register(api, 'bob')
  room = await createRoom(api, alice.token, { preset: 'public_chat' })
  await join(api, bob.token, room)
  const maker = deviceMaker(bob)
  await call(bob, 'POST', '/keys/upload', { device_keys: maker.identity(), one_time_keys: maker.keys(2) })
  const since = await upToDate(bob)
  await waitUntil('it follows the node that serves', async () => (await sync(bob.token, `since=${since}`)).isOwn)
})
afterAll(async () => {
  process.off('worker', begun)
  await api.close()
  await server.close()
})
beforeEach(() => waitUntil('the end of earlier syncs', async () => (await heldThere()) === 0))

describe('a sync that finds nothing', () => {
  it('is answered where it is asked, as the node that serves would', async () => {
    const since = await upToDate(bob)
    const query = `since=${since}&timeout=0`
    const expected = await api.call('GET', `/sync?${query}`, { token: bob.token })
    for (let times = 0; times < 3; times++) {
      const { isOwn, status, body } = await sync(bob.token, query)
      expect({ isOwn, status, body }).toEqual({ isOwn: true, status: 200, body: expected })
    }
  })

  it('has news at once of what was acknowledged before', async () => {
    let since = await upToDate(bob)
    for (let times = 0; times < 20; times++) {
      // It is known there that there is nothing new.
      await sync(bob.token, `since=${since}`)
      await say(`number ${times}`)
      const { body } = await sync(bob.token, `since=${since}&timeout=0`)
      const events = body.rooms.join[room].timeline.events as Json[]
      expect(events.map(({ content }) => content.body)).toEqual([`number ${times}`])
      since = body.next_batch
    }
  })

  it('shows how many keys are left after an upload, which wakes nobody', async () => {
    const carol = await register(api, 'carol')
    const maker = deviceMaker(carol)
    await call(carol, 'POST', '/keys/upload', { device_keys: maker.identity() })
    const since = await upToDate(carol)
    await sync(carol.token, `since=${since}`)
    await call(carol, 'POST', '/keys/upload', { one_time_keys: maker.keys(3) })
    const { body } = await sync(carol.token, `since=${since}&timeout=0`)
    expect(body.device_one_time_keys_count).toEqual({ signed_curve25519: 3 })
  })

  it('is passed on if it is no usual one, and errors are those of the node that serves', async () => {
    const since = await upToDate(bob)
    for (const query of [
      'timeout=0',
      `since=${since}&full_state=true`,
      `since=${since}&timeout=0&timeout=0`,
      'since=x',
    ])
      expect({ query, isOwn: (await sync(bob.token, query)).isOwn }).toEqual({ query, isOwn: false })
    expect(await sync(bob.token, 'since=x')).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
    expect(await sync('hearth_nobody', `since=${since}`)).toMatchObject({ status: 401, isOwn: false })
    expect(await sync(bob.token, `since=${since}&filter=99`)).toMatchObject({ status: 404, isOwn: false })
  })
})

/** What one does, and how it shows in the sync of the other. */
const NEWS: readonly (readonly [string, () => Promise<unknown>, (body: Json) => unknown])[] = [
  ['a message', () => say('hello'), (body) => body.rooms.join[room].timeline.events[0].content.body],
  [
    'typing',
    () => call(alice, 'PUT', `/rooms/${enc(room)}/typing/${enc(alice.userId)}`, { typing: true, timeout: 30_000 }),
    (body) => body.rooms.join[room].ephemeral.events[0].content.user_ids[0],
  ],
  [
    'presence',
    () => call(alice, 'PUT', `/presence/${enc(alice.userId)}/status`, { presence: 'online', status_msg: `${++count}` }),
    (body) => body.presence.events[0].content.status_msg,
  ],
  [
    'a receipt',
    async () => call(alice, 'POST', `/rooms/${enc(room)}/receipt/m.read/${enc(await newest())}`),
    (body) => body.rooms.join[room].ephemeral.events.find(({ type }: Json) => type === 'm.receipt').content,
  ],
  [
    'account data',
    () => call(bob, 'PUT', `/user/${enc(bob.userId)}/account_data/org.example.${++count}`, { a: count }),
    (body) => body.account_data.events[0].content.a,
  ],
  [
    'account data of a room',
    () => call(bob, 'PUT', `/user/${enc(bob.userId)}/rooms/${enc(room)}/account_data/org.example.x`, { a: ++count }),
    (body) => body.rooms.join[room].account_data.events[0].content.a,
  ],
  [
    'a message to the device',
    () =>
      call(alice, 'PUT', `/sendToDevice/org.example/t${++count}`, { messages: { [bob.userId]: { '*': { a: 1 } } } }),
    (body) => body.to_device.events[0].content.a,
  ],
  [
    'a changed list of devices',
    () => call(alice, 'POST', '/keys/upload', { device_keys: deviceMaker(alice).identity() }),
    (body) => body.device_lists.changed[0],
  ],
  [
    'a claimed key',
    () =>
      call(alice, 'POST', '/keys/claim', { one_time_keys: { [bob.userId]: { [bob.deviceId]: 'signed_curve25519' } } }),
    (body) => `${body.device_one_time_keys_count.signed_curve25519}`,
  ],
  [
    'an invitation',
    () => createRoom(api, alice.token, { invite: [bob.userId] }),
    (body) => Object.keys(body.rooms.invite)[0],
  ],
  [
    'a room that was joined',
    async () => {
      const other = await createRoom(api, alice.token, { preset: 'public_chat' })
      await join(api, bob.token, other)
    },
    (body) => Object.keys(body.rooms.join)[0],
  ],
]

describe('a sync that does not wait', () => {
  beforeAll(async () => {
    // Whoever does not wait is answered with the help of a thread, which is begun for it.
    const since = await upToDate(bob)
    await waitUntil('the thread', async () => (await sync(bob.token, `since=${since}`)).isOwn && threads.length > 0)
  })

  it.each(NEWS)('has %s at once after it was acknowledged', async (_, act, shown) => {
    const since = await upToDate(bob)
    for (let times = 0; times < 2; times++)
      expect(await sync(bob.token, `since=${since}`)).toMatchObject({ isOwn: true })
    await act()
    const { body } = await sync(bob.token, `since=${since}&timeout=0`)
    expect(shown(body)).toBeDefined()
  })

  it.each([
    [
      'presence of one who shares no room',
      (by: Account) => call(by, 'PUT', `/presence/${enc(by.userId)}/status`, { presence: 'online' }),
    ],
    [
      'a message to no device',
      (by: Account) =>
        call(by, 'PUT', '/sendToDevice/org.example/t', { messages: { [by.userId]: { NONE: { a: 1 } } } }),
    ],
  ])('goes on from after %s, which wakes nobody', async (what, act) => {
    const alone = await register(api, `alone_${what.length}`)
    const since = await upToDate(bob)
    for (let times = 0; times < 2; times++) await sync(bob.token, `since=${since}`)
    await act(alone)
    const { next_batch } = (await sync(bob.token, `since=${since}&timeout=0`)).body
    expect(next_batch).not.toBe(since)
    expect(next_batch).toBe((await api.call('GET', `/sync?since=${since}`, { token: bob.token })).next_batch)
  })
})

const newest = async (): Promise<string> =>
  (await api.call('GET', `/rooms/${enc(room)}/messages?dir=b&limit=1`, { token: alice.token })).chunk[0].event_id

describe('a sync that is held', () => {
  it.each(NEWS)('hears of %s', async (_, act, shown) => {
    const { answer } = await hold(bob.token, await upToDate(bob))
    await act()
    const { status, body, isOwn } = await answer
    expect({ status, isOwn }).toEqual({ status: 200, isOwn: true })
    expect(shown(body)).toBeTruthy()
    // Where it goes on, it gets what it would get at the node that serves.
    const next = `since=${body.next_batch}&timeout=0`
    const after = await sync(bob.token, next)
    const there = await api.call('GET', `/sync?${next}`, { token: bob.token })
    // An acknowledgement moves the token.
    expect({ ...after.body, next_batch: there.next_batch }).toEqual(there)
    // Its end is news too, and would come in a later test.
    await call(alice, 'PUT', `/rooms/${enc(room)}/typing/${enc(alice.userId)}`, { typing: false })
    await call(alice, 'PUT', `/presence/${enc(alice.userId)}/status`, { presence: 'offline' })
  })

  it('acknowledges the messages that it got', async () => {
    const since = await upToDate(bob)
    const { answer } = await hold(bob.token, since)
    const messages = { [bob.userId]: { '*': { a: 1 } } }
    await call(alice, 'PUT', `/sendToDevice/org.example/t${++count}`, { messages })
    const { body } = await answer
    expect(body.to_device.events).toHaveLength(1)
    await sync(bob.token, `since=${body.next_batch}&timeout=0`)
    // They are gone for good.
    expect((await api.call('GET', `/sync?since=${since}`, { token: bob.token })).to_device.events).toEqual([])
  })

  it('hears of a room that it joined before', async () => {
    const other = await createRoom(api, alice.token, { preset: 'public_chat' })
    await join(api, bob.token, other)
    const { answer } = await hold(bob.token, await upToDate(bob))
    await sendText(api, alice.token, other, 'one', 'in the new room')
    expect((await answer).body.rooms.join[other].timeline.events).toHaveLength(1)
  })

  it('goes on while there is news for others', async () => {
    const { answer, leave } = await hold(bob.token, await upToDate(bob))
    const own = await createRoom(api, alice.token)
    await sendText(api, alice.token, own, 'one', 'to nobody')
    await say('to all')
    expect(Object.keys((await answer).body.rooms.join)).toEqual([room])
    leave()
  })

  it('ends without news when its time is up, and the next one goes on from there', async () => {
    const since = await upToDate(bob)
    const { isOwn, body } = await sync(bob.token, `since=${since}&timeout=50`)
    expect([isOwn, body.rooms]).toEqual([true, undefined])
    const { answer } = await hold(bob.token, body.next_batch)
    await say('later')
    expect((await answer).body.rooms.join[room].timeline.events).toHaveLength(1)
  })

  it('is forgotten when its client leaves', async () => {
    const { answer, leave } = await hold(bob.token, await upToDate(bob))
    leave()
    await expect(answer).rejects.toThrow()
    await waitUntil('nothing is held', async () => (await heldThere()) === 0)
  })

  it('has the filter that it asked for', async () => {
    const filter = enc(JSON.stringify({ room: { timeline: { types: ['org.example.wanted'] } } }))
    const { answer } = await hold(bob.token, await upToDate(bob), `&filter=${filter}`)
    await say('not wanted')
    await api.call('PUT', `/rooms/${enc(room)}/send/org.example.wanted/t${++count}`, { token: alice.token, body: {} })
    const types = ((await answer).body.rooms.join[room].timeline.events as Json[]).map(({ type }) => type)
    expect(types).toEqual(['org.example.wanted'])
  })

  it('ends with 401 when its session ends, and the next one too', async () => {
    const guest = await register(api, `short${++count}`)
    const since = await upToDate(guest)
    const { answer } = await hold(guest.token, since)
    await call(guest, 'POST', '/logout')
    const expected = { status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } }
    expect(await answer).toMatchObject(expected)
    expect(await sync(guest.token, `since=${since}`)).toMatchObject(expected)
  })

  it('ends with 200 when its token is renewed', async () => {
    const { userId } = await register(api, `renewer${++count}`)
    const proof = { type: 'm.login.password', identifier: { type: 'm.id.user', user: userId }, password: PASSWORD }
    const { access_token, refresh_token } = await api.call('POST', '/login', {
      body: { ...proof, refresh_token: true },
    })
    const since = await upToDate({ token: access_token })
    const { answer } = await hold(access_token, since)
    await api.call('POST', '/refresh', { body: { refresh_token } })
    const { status, body } = await answer
    expect([status, body.next_batch]).toEqual([200, since])
  })

  it('ends without news when its device holds too many', async () => {
    const device = await login(api, bob.userId)
    const since = await upToDate(device)
    const first = await hold(device.token, since)
    const others = []
    for (let more = 1; more < MAX_HELD_SYNCS_PER_DEVICE; more++) others.push(await hold(device.token, since))
    const fifth = sync(device.token, `timeout=${HELD_MS}&since=${since}`)
    const { status, body } = await first.answer
    expect([status, body.next_batch, body.rooms]).toEqual([200, since, undefined])
    await say('to all of them')
    for (const { body } of await Promise.all([fifth, ...others.map(({ answer }) => answer)]))
      expect(body.rooms.join[room].timeline.events).toHaveLength(1)
  })

  it('reaches many at once', async () => {
    const since = await upToDate(bob)
    const devices = await Promise.all(Array.from({ length: 30 }, () => login(api, bob.userId)))
    const start = await Promise.all(devices.map(upToDate))
    expect(start).not.toContain(since)
    const held = await Promise.all(devices.map(({ token }, n) => sync(token, `timeout=1&since=${start[n]}`)))
    expect(held.every(({ isOwn }) => isOwn)).toBe(true)
    const polls = devices.map(({ token }, n) => sync(token, `timeout=${HELD_MS}&since=${held[n]!.body.next_batch}`))
    await waitUntil('all are held', async () => (await heldThere()) === devices.length)
    await say('to all of you')
    for (const { body, isOwn } of await Promise.all(polls))
      expect([isOwn, body.rooms.join[room].timeline.events.length]).toEqual([true, 1])
  })
})

/** What a client of sliding sync asks for. */
const WISH = {
  lists: { all: { ranges: [[0, 9]], timeline_limit: 5, required_state: [] } },
  extensions: { typing: { enabled: true }, to_device: { enabled: true }, e2ee: { enabled: true } },
}
const MERGED_WISH = { ...WISH, lists: { all: { range: [0, 9], timeline_limit: 5, required_state: {} } } }

/** The two forms: how one asks to go on from a position. */
const FORMS: readonly (readonly [string, (pos: string | undefined, timeout: number) => readonly [string, Json]])[] = [
  [
    'unstable/org.matrix.simplified_msc3575',
    (pos, timeout) => [pos === undefined ? '' : `?pos=${enc(pos)}&timeout=${timeout}`, WISH],
  ],
  ['v4', (pos, timeout) => ['', { ...MERGED_WISH, ...(pos !== undefined && { pos }), timeout }]],
]

describe.each(FORMS)('a sliding sync in the form %s', (form, asking) => {
  async function slide(token: string, pos?: string, timeout = 0, where = server.standbyUrl): Promise<Synced> {
    const [query, body] = asking(pos, timeout)
    const answer = await fetch(`${where}/_matrix/client/${form}/sync${query}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    })
    return { status: answer.status, body: await answer.json(), isOwn: idsOf(answer) !== servingIds }
  }

  /** Where a connection goes on that has everything. */
  async function begin({ token }: Account): Promise<string> {
    let { pos } = (await slide(token)).body
    for (;;) {
      const next = (await slide(token, pos, 0, server.baseUrl)).body.pos
      if (next === pos) return pos
      pos = next
    }
  }

  async function holdAt(token: string, pos: string) {
    const before = await heldThere()
    const answer = slide(token, pos, HELD_MS)
    answer.catch(() => {})
    await waitUntil('a sync that is held', async () => (await heldThere()) > before)
    return { answer }
  }

  it('that finds nothing is answered where it is asked, as the node that serves would', async () => {
    const device = await login(api, bob.userId)
    const pos = await begin(device)
    const expected = await slide(device.token, pos, 0, server.baseUrl)
    for (let times = 0; times < 3; times++) expect(await slide(device.token, pos)).toEqual({ ...expected, isOwn: true })
  })

  it('has news at once of what was acknowledged before', async () => {
    const device = await login(api, bob.userId)
    let pos = await begin(device)
    for (let times = 0; times < 10; times++) {
      await slide(device.token, pos)
      await say(`number ${times}`)
      const { body } = await slide(device.token, pos)
      expect(body.rooms[room].timeline.map(({ content }: Json) => content.body)).toEqual([`number ${times}`])
      pos = body.pos
    }
  })

  it('that is held hears of a message, of typing and of a message to the device', async () => {
    const device = await login(api, bob.userId)
    let pos = await begin(device)
    const typing = (is: boolean) =>
      call(alice, 'PUT', `/rooms/${enc(room)}/typing/${enc(alice.userId)}`, { typing: is, timeout: 30_000 })
    const messages = { [bob.userId]: { [device.deviceId]: { a: 1 } } }
    const acts: readonly (readonly [() => Promise<unknown>, (body: Json) => unknown])[] = [
      [() => say('hello'), (body) => body.rooms[room].timeline[0].content.body],
      [() => typing(true), (body) => JSON.stringify(body.extensions.typing.rooms[room]).includes(alice.userId)],
      [() => typing(false), (body) => body.extensions.typing.rooms[room]],
      [
        () => call(alice, 'PUT', `/sendToDevice/org.example/t${++count}`, { messages }),
        (body) => body.extensions.to_device.events[0].content.a,
      ],
    ]
    for (const [act, shown] of acts) {
      const { answer } = await holdAt(device.token, pos)
      await act()
      const { body, isOwn } = await answer
      expect(isOwn).toBe(true)
      expect(shown(body)).toBeTruthy()
      pos = body.pos
    }
  })

  it.each([['at the same node'], ['at the other node']])('ends when its client sends another %s', async (where) => {
    const device = await login(api, bob.userId)
    const pos = await begin(device)
    const { answer } = await holdAt(device.token, pos)
    const other = where === 'at the same node' ? server.standbyUrl : server.baseUrl
    const newer = slide(device.token, pos, HELD_MS, other)
    const { status, body } = await answer
    expect([status, body.pos, body.rooms]).toEqual([200, pos, {}])
    await say('to the newer one')
    const { body: news } = await newer
    expect(news.rooms[room].timeline).toHaveLength(1)
    // The connection goes on from there.
    expect((await slide(device.token, news.pos)).status).toBe(200)
  })

  it('gets the errors of the node that serves', async () => {
    const device = await login(api, bob.userId)
    expect(await slide(device.token, 's1_1_abc.1~0123456789.1.0.abcdef')).toMatchObject({
      status: 400,
      isOwn: false,
      body: { errcode: 'M_UNKNOWN_POS' },
    })
    const pos = await begin(device)
    await call(device, 'POST', '/logout')
    expect(await slide(device.token, pos)).toMatchObject({ status: 401, isOwn: false })
  })
})
