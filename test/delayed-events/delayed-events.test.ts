import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DELAYED_SUMS_EVERY_MS, MAX_DELAYED_EVENTS } from '../../src/domain/limits/delayed-events.ts'
import { type Account, type Api, createRoom, type Json, join, openApi, register, syncPath } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'

const U = '/_matrix/client/unstable/org.matrix.msc4140'
const V1 = '/_matrix/client/v1'
const enc = encodeURIComponent
const HOUR = 3_600_000

let server: TestServer
let api: Api
let alice: Account
let bob: Account
let room: string
let ahead = 0
let sent = 0

beforeAll(async () => {
  server = await startServer({}, { clock: { now: () => Date.now() + ahead } })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  bob = await register(api, 'bob')
})
afterAll(async () => {
  await api.close()
  await server.close()
})
beforeEach(async () => {
  room = await createRoom(api, alice.token, { preset: 'public_chat' })
  await join(api, bob.token, room)
})

const body = (text: string) => ({ msgtype: 'm.text', body: text })

async function schedule(who: Account, text: string, delay_ms: number, more: object = {}): Promise<string> {
  const path = `${U}/rooms/${enc(room)}/delayed_event/m.room.message/t${sent++}`
  return (await api.call('PUT', path, { token: who.token, body: { delay_ms, content: body(text), ...more } })).delay_id
}

const act = (id: string, action: string, token?: string) =>
  api.request('POST', `${U}/delayed_events/${id}/${action}`, token === undefined ? {} : { token })
const get = (id: string, who = alice) => api.request('GET', `${V1}/delayed_events/${id}`, { token: who.token })
const ended = (id: string, who = alice): Promise<Json> =>
  waitUntil('the end of a delayed event', async () => {
    const { body } = await get(id, who)
    return body.finalised_ts !== undefined && body
  })
const waiting = async (who = alice): Promise<Json[]> =>
  (await api.call('GET', `${U}/delayed_events`, { token: who.token })).delayed_events

async function timeline(who = bob): Promise<Json[]> {
  const { chunk } = await api.call('GET', `/rooms/${enc(room)}/messages?dir=b&limit=100`, { token: who.token })
  return chunk.reverse()
}
const texts = async (who = bob) => (await timeline(who)).flatMap(({ content }) => content.body ?? [])
const appeared = (text: string) => waitUntil(text, async () => (await texts()).includes(text))

describe('a delayed event', () => {
  it('is sent when it is due, and not before', async () => {
    const id = await schedule(alice, 'later', 60_000)
    expect(Buffer.from(id, 'base64url')).toHaveLength(16)
    expect(await waiting()).toMatchObject([
      { delay_id: id, room_id: room, type: 'm.room.message', delay_ms: 60_000, content: body('later') },
    ])
    ahead += 59_000
    await schedule(alice, 'earlier', 1)
    await appeared('earlier')
    expect(await texts()).toEqual(['earlier'])
    ahead += 1_000
    await appeared('later')
    const final = await ended(id)
    expect(await waiting()).toEqual([])
    const [event] = (await timeline()).slice(-1)
    expect(final).toMatchObject({ event_id: event.event_id, finalised_ts: expect.any(Number) })
    expect(final.finalised_ts).toBeGreaterThanOrEqual(final.scheduled_at + final.delay_ms)
  })

  it('shows its id to its sender alone, in every session', async () => {
    const begin = async (who: Account) => (await api.call('GET', syncPath({}), { token: who.token })).next_batch
    const [ofAlice, ofBob] = [await begin(alice), await begin(bob)]
    const id = await schedule(alice, 'mine', 1)
    await appeared('mine')
    // One after the other: what many read at the same time is written once.
    const news = async (who: Account, since: string) =>
      JSON.stringify(await api.call('GET', syncPath({ since }), { token: who.token }))
    expect(await news(alice, ofAlice)).toContain(id)
    expect(await news(bob, ofBob)).not.toContain(id)
    expect(await news(alice, ofAlice)).toContain(id)
    const of = async (who: Account) => (await timeline(who)).at(-1)
    expect((await of(alice)).unsigned).toMatchObject({ delay_id: id, 'org.matrix.msc4140.delay_id': id })
    expect(JSON.stringify(await of(bob))).not.toContain(id)
    const { rooms } = await api.call('GET', syncPath({}), { token: alice.token })
    expect(rooms.join[room].timeline.events.at(-1).unsigned.delay_id).toBe(id)
    expect(JSON.stringify(await api.call('GET', syncPath({}), { token: bob.token }))).not.toContain(id)
  })

  it('may be state, and in the form of the first drafts', async () => {
    const state = `/rooms/${enc(room)}/state/m.room.topic?org.matrix.msc4140.delay=1`
    const { delay_id } = await api.call('PUT', state, { token: alice.token, body: { topic: 'later' } })
    const topic = () => api.request('GET', `/rooms/${enc(room)}/state/m.room.topic`, { token: bob.token })
    await waitUntil('the topic', async () => (await topic()).body.topic === 'later')
    expect(await ended(delay_id)).toMatchObject({ state_key: '', event_id: expect.any(String) })
    const path = `/rooms/${enc(room)}/send/m.room.message/x1?org.matrix.msc4140.delay=1`
    const first = await api.call('PUT', path, { token: alice.token, body: body('old form') })
    expect(await api.call('PUT', path, { token: alice.token, body: body('old form') })).toEqual(first)
    await appeared('old form')
    expect((await texts()).filter((text) => text === 'old form')).toHaveLength(1)
  })

  it('is scheduled once by a request that is repeated', async () => {
    const path = `/rooms/${enc(room)}/delayed_event/m.room.message/again`
    const call = { token: alice.token, body: { delay_ms: HOUR, content: body('once') } }
    const first = await api.call('PUT', path, call)
    expect(await api.call('PUT', path, call)).toEqual(first)
    expect(await waiting()).toHaveLength(1)
    await act(first.delay_id, 'cancel')
  })

  it('is sent by the rights of then, and ends with an error without them', async () => {
    const id = await schedule(bob, 'no longer', 60_000)
    await api.call('POST', `/rooms/${enc(room)}/kick`, { token: alice.token, body: { user_id: bob.userId } })
    ahead += 60_000
    const final = await ended(id, bob)
    expect(final).toMatchObject({ error: { errcode: 'M_FORBIDDEN' } })
    expect(final.event_id).toBeUndefined()
    expect((await act(id, 'cancel')).status).toBe(200)
    expect(await act(id, 'send')).toMatchObject({ status: 409, body: { errcode: 'M_UNKNOWN' } })
  })
})

describe('managing one', () => {
  it('works without a token, and with that of its user', async () => {
    const [first, second] = [await schedule(alice, 'a', HOUR), await schedule(alice, 'b', HOUR)]
    expect(await act(first, 'send')).toEqual({ status: 200, body: {} })
    expect((await act(second, 'send', bob.token)).body.errcode).toBe('M_NOT_FOUND')
    expect((await act(second, 'send', 'nonsense')).body.errcode).toBe('M_UNKNOWN_TOKEN')
    expect((await act(second, 'send', alice.token)).status).toBe(200)
    expect(await texts()).toEqual(['a', 'b'])
    expect((await get(second, bob)).body.errcode).toBe('M_NOT_FOUND')
  })

  it('works with the action in the body', async () => {
    const id = await schedule(alice, 'body', HOUR)
    const path = `${U}/delayed_events/${id}`
    expect((await api.request('POST', path, { body: { action: 'fly' } })).status).toBe(400)
    expect(await api.request('POST', path, { body: { action: 'send' } })).toEqual({ status: 200, body: {} })
    expect(await texts()).toEqual(['body'])
  })

  it('answers a repeat alike, and a contradiction by 409', async () => {
    const [gone, there] = [await schedule(alice, 'gone', HOUR), await schedule(alice, 'there', HOUR)]
    for (let times = 0; times < 2; times++) {
      expect((await act(gone, 'cancel')).status).toBe(200)
      expect((await act(there, 'send')).status).toBe(200)
    }
    for (const action of ['send', 'restart']) expect((await act(gone, action)).status).toBe(409)
    expect((await act(there, 'cancel')).status).toBe(409)
    expect(await act(there, 'restart')).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
    expect(await act('AAAAAAAAAAAAAAAAAAAAAA', 'send')).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
    expect(await act(there, 'fly')).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
    expect(await texts()).toEqual(['there'])
  })

  it('begins its time anew', async () => {
    const id = await schedule(alice, 'restarted', 60_000)
    ahead += 40_000
    expect(await act(id, 'restart')).toEqual({ status: 200, body: {} })
    ahead += 40_000
    await schedule(alice, 'mark', 1)
    await appeared('mark')
    expect(await texts()).toEqual(['mark'])
    ahead += 20_000
    await appeared('restarted')
  })

  it('stays scheduled when it cannot be sent by hand', async () => {
    const id = await schedule(bob, 'refused', HOUR)
    await api.call('POST', `/rooms/${enc(room)}/kick`, { token: alice.token, body: { user_id: bob.userId } })
    expect(await act(id, 'send')).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    expect(await waiting(bob)).toHaveLength(1)
    expect((await act(id, 'cancel')).status).toBe(200)
  })

  it('has one outcome, however many act at once', async () => {
    const id = await schedule(alice, 'raced', HOUR)
    const actions = ['send', 'cancel', 'restart', 'send', 'cancel', 'restart', 'send', 'cancel']
    const answers = await Promise.all(actions.map((action) => act(id, action)))
    const wasSent = (await texts()).filter((text) => text === 'raced').length
    const ends = answers.filter(({ status }, index) => status === 200 && actions[index] !== 'restart')
    expect(new Set(answers.map(({ status }) => status).filter((status) => ![200, 404, 409].includes(status)))).toEqual(
      new Set(),
    )
    expect(ends.length).toBe(3)
    expect(wasSent).toBe(actions[answers.findIndex(({ status }) => status === 200)] === 'send' ? 1 : 0)
  })
})

describe('a restart of the server', () => {
  it('loses none, and sends what is overdue in the order of their times', async () => {
    await schedule(alice, 'third', 30_000)
    await schedule(alice, 'first', 10_000)
    await schedule(bob, 'second', 20_000)
    const kept = await schedule(alice, 'kept', 10 * HOUR)
    ahead += 60_000
    await server.restart()
    await appeared('third')
    expect(await texts()).toEqual(['first', 'second', 'third'])
    expect((await waiting()).map(({ delay_id }) => delay_id)).toEqual([kept])
    await act(kept, 'cancel')
  })

  it('between sending and noting it does not send twice', async () => {
    const id = await schedule(alice, 'exactly once', 1)
    await appeared('exactly once')
    const undo = 'UPDATE delayed_event SET finalised_at = NULL, event_id = NULL WHERE delay_id = $1'
    const before = (await ended(id)).event_id
    // As it was when the server died after the commit of the event.
    await server.database.db.tx((tx) => tx.query(undo, [id]))
    await server.restart()
    await waitUntil('the end again', async () => (await get(id)).body.event_id === before)
    expect((await texts()).filter((text) => text === 'exactly once')).toHaveLength(1)
  })
})

describe('bounds', () => {
  const put = (path: string, content: object) => api.request('PUT', path, { token: bob.token, body: content })

  it('refuses a delay of ten years, in both forms', async () => {
    const delay_ms = 10 * 365 * 24 * HOUR
    const path = `/rooms/${enc(room)}/delayed_event/m.room.message/ten`
    const extra = { 'org.matrix.msc4140.errcode': 'M_MAX_DELAY_EXCEEDED', 'org.matrix.msc4140.max_delay': 24 * HOUR }
    const late = { delay_ms, content: body('x') }
    expect(await put(path, late)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN', ...extra } })
    const old = await put(`/rooms/${enc(room)}/send/m.room.message/ten?org.matrix.msc4140.delay=${delay_ms}`, body('x'))
    expect(old).toMatchObject({ status: 400, body: { errcode: 'M_UNKNOWN', ...extra } })
    for (const wrong of [0, -1, 1.5, '9', null]) {
      expect((await put(path, { delay_ms: wrong, content: body('x') })).status).toBe(400)
    }
    expect(await waiting(bob)).toEqual([])
  })

  it('refuses the 101st of 1,000, says when to come again, and keeps the others', async () => {
    const answers: Json[] = []
    for (let i = 0; i < 1_000; i += 100) {
      const some = Array.from({ length: 100 }, (_, j) =>
        put(`/rooms/${enc(room)}/delayed_event/m.room.message/many${i + j}`, { delay_ms: HOUR, content: body('x') }),
      )
      answers.push(...(await Promise.all(some)))
    }
    const refused = answers.filter(({ status }) => status === 429)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(100)
    expect(refused).toHaveLength(900)
    expect(refused[0].body).toMatchObject({ errcode: 'M_LIMIT_EXCEEDED', retry_after_ms: expect.any(Number) })
    expect(refused[0].body.retry_after_ms).toBeGreaterThan(HOUR - 120_000)
    expect(await waiting(bob)).toHaveLength(100)
    await server.database.db.tx((tx) => tx.query('DELETE FROM delayed_event'))
  })

  it('refuses contents that are too long, one and together', async () => {
    const long = (bytes: number) => ({ delay_ms: HOUR, content: { body: 'x'.repeat(bytes) } })
    const path = (i: number) => `/rooms/${enc(room)}/delayed_event/m.room.message/long${i}`
    expect(await put(path(0), long(70_000))).toMatchObject({ status: 413, body: { errcode: 'M_TOO_LARGE' } })
    const answers = []
    for (let i = 1; i < 12; i++) answers.push((await put(path(i), long(60_000))).status)
    expect(answers.slice(0, 8)).toEqual(Array(8).fill(200))
    expect(answers.slice(8)).toEqual([429, 429, 429])
    await server.database.db.tx((tx) => tx.query('DELETE FROM delayed_event'))
  })

  it('refuses a type or a state key that no event may have', async () => {
    const path = (type: string, i: number) => `/rooms/${enc(room)}/delayed_event/${type}/key${i}`
    const event = { delay_ms: HOUR, content: {} }
    const refused = { status: 413, body: { errcode: 'M_TOO_LARGE' } }
    expect(await put(path('m.key', 1), { ...event, state_key: 'x'.repeat(256) })).toMatchObject(refused)
    expect(await put(path('m'.repeat(256), 2), event)).toMatchObject(refused)
    expect((await put(path('m.key', 3), { ...event, state_key: 'x'.repeat(255) })).status).toBe(200)
    await server.database.db.tx((tx) => tx.query('DELETE FROM delayed_event'))
  })

  it('refuses more than all may have together', async () => {
    const sql = (text: string) => server.database.db.tx((tx) => tx.query(text))
    await sql(`INSERT INTO delayed_event (delay_id, user_nid, room_id, type, content, is_unlimited, delay_ms, scheduled_at, due_at)
      SELECT 'many' || n, -1, '!x:localhost', 'm', '{}', false, 1, 1, 9000000000000000
      FROM generate_series(1, ${MAX_DELAYED_EVENTS}) AS n`)
    ahead += DELAYED_SUMS_EVERY_MS
    const path = `/rooms/${enc(room)}/delayed_event/m.room.message/full`
    const refused = await put(path, { delay_ms: HOUR, content: body('x') })
    expect(refused).toMatchObject({ status: 429, body: { errcode: 'M_LIMIT_EXCEEDED' } })
    await sql('DELETE FROM delayed_event')
    ahead += DELAYED_SUMS_EVERY_MS
    expect((await put(path, { delay_ms: HOUR, content: body('x') })).status).toBe(200)
    await sql('DELETE FROM delayed_event')
  })

  it('that have ended are kept within a sum of their contents, the newest in any case', async () => {
    const carol = await register(api, 'carol')
    await join(api, carol.token, room)
    const long = 'x'.repeat(30_000)
    const ids: string[] = []
    for (const text of ['small', long, `${long}1`, `${long}2`, 'x'.repeat(60_000)]) {
      const id = await schedule(carol, text, HOUR)
      expect((await act(id, 'cancel', carol.token)).status).toBe(200)
      ids.push(id)
      ahead += 1_000
    }
    const statuses = await Promise.all(ids.map(async (id) => (await get(id, carol)).status))
    expect(statuses).toEqual([404, 404, 404, 404, 200])
    const small = await schedule(carol, 'small', HOUR)
    await act(small, 'cancel', carol.token)
    expect((await get(small, carol)).status).toBe(200)
    expect((await get(ids.at(-1)!, carol)).status).toBe(200)
  })

  it('can be switched off, and are told to clients', async () => {
    const advertised = async () => (await api.call('GET', '/capabilities', { token: bob.token })).capabilities
    expect((await advertised())['m.delayed_events']).toEqual({ max_delay_ms: 24 * HOUR, max_scheduled: 100 })
    await server.restart({ calls: { delayed_events: { max_scheduled: 0 } } })
    const path = `/rooms/${enc(room)}/delayed_event/m.room.message/off`
    expect(await put(path, { delay_ms: 1, content: body('x') })).toMatchObject({ status: 403 })
    await server.restart({ calls: { delayed_events: { max_scheduled: 100 } } })
  })
})
