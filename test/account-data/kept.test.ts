import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  MAX_ACCOUNT_DATA_BYTES,
  MAX_ACCOUNT_DATA_BYTES_PER_USER,
  MAX_ACCOUNT_DATA_PER_USER,
  MAX_FILTERS_PER_USER,
} from '../../src/domain/limits.ts'
import { accountDataBetween } from '../../src/store/accounts/account-data.ts'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { type Account, type Api, type Json, mapConcurrently, openApi, register } from '../support/api.ts'
import { reached } from '../support/bounds.ts'

let server: AccountServer
let api: Api
let alice: Account
let bob: Account

beforeAll(async () => {
  server = await startAccountServer()
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  bob = await register(api, 'bob')
})

afterAll(async () => {
  await api.close()
  await server.close()
})

const as = (token: string, body?: Json) => ({ token, ...(body !== undefined && { body }) })

describe('profiles', () => {
  const path = (field = '') => `/profile/@alice:localhost${field}`

  it('begin empty', async () => {
    expect(await api.call('GET', path())).toEqual({})
    expect(await api.call('GET', path('/displayname'))).toEqual({})
    expect(await api.request('GET', path('/m.tz'))).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
    expect((await api.request('GET', '/profile/@nobody:localhost')).status).toBe(404)
    expect((await api.request('GET', '/profile/@alice:elsewhere.org')).status).toBe(404)
  })

  it('are set by their owner, read by anyone, and carried into rooms', async () => {
    await api.call('PUT', path('/displayname'), as(alice.token, { displayname: 'Alice 🔥' }))
    await api.call('PUT', path('/avatar_url'), as(alice.token, { avatar_url: 'mxc://localhost/a' }))
    await api.call('PUT', path('/m.tz'), as(alice.token, { 'm.tz': 'Europe/Berlin' }))
    expect(await api.call('GET', path())).toEqual({
      displayname: 'Alice 🔥',
      avatar_url: 'mxc://localhost/a',
      'm.tz': 'Europe/Berlin',
    })
    expect(await api.call('GET', path('/avatar_url'))).toEqual({ avatar_url: 'mxc://localhost/a' })
    expect(server.profileChanges).toEqual([
      { userId: alice.userId, profile: { displayname: 'Alice 🔥' } },
      { userId: alice.userId, profile: { displayname: 'Alice 🔥', avatar_url: 'mxc://localhost/a' } },
    ])
    await api.call('PUT', path('/displayname'), as(alice.token, { displayname: 'Alice 🔥' }))
    expect(server.profileChanges).toHaveLength(2)
  })

  it('lose a field by null and by DELETE', async () => {
    await api.call('DELETE', path('/m.tz'), as(alice.token))
    await api.call('PUT', path('/displayname'), as(alice.token, { displayname: null }))
    expect(await api.call('GET', path())).toEqual({ avatar_url: 'mxc://localhost/a' })
    expect(server.profileChanges.at(-1)).toEqual({ userId: alice.userId, profile: { avatar_url: 'mxc://localhost/a' } })
  })

  const refused: [name: string, field: string, body: Json, status: number, errcode: string][] = [
    ['a missing key', '/displayname', {}, 400, 'M_MISSING_PARAM'],
    ['a name that is no string', '/displayname', { displayname: 4 }, 400, 'M_BAD_JSON'],
    ['a name that is too long', '/displayname', { displayname: 'x'.repeat(257) }, 400, 'M_INVALID_PARAM'],
    ['a field name that is too long', `/${'x'.repeat(256)}`, { ['x'.repeat(256)]: 1 }, 400, 'M_KEY_TOO_LARGE'],
    ['a field name with capitals', '/Foo', { Foo: 1 }, 400, 'M_INVALID_PARAM'],
    ['more than 64 KiB', '/m.big', { 'm.big': 'x'.repeat(70_000) }, 400, 'M_PROFILE_TOO_LARGE'],
  ]
  it.each(refused)('refuse %s', async (_name, field, body, status, errcode) => {
    expect(await api.request('PUT', path(field), as(alice.token, body))).toMatchObject({ status, body: { errcode } })
  })

  it("refuse another user's hand", async () => {
    const answer = await api.request('PUT', path('/displayname'), as(bob.token, { displayname: 'Mallory' }))
    expect(answer).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
  })
})

describe('account data', () => {
  const global = '/user/@alice:localhost/account_data/org.test.data'
  const inRoom = '/user/@alice:localhost/rooms/!room:localhost/account_data/org.test.data'

  it('keeps what it is given, for the account and for each room', async () => {
    expect((await api.request('GET', global, as(alice.token))).status).toBe(404)
    await api.call('PUT', global, as(alice.token, { where: 'account', n: 1.5, nested: [null, { a: true }] }))
    await api.call('PUT', inRoom, as(alice.token, { where: 'room' }))
    expect(await api.call('GET', global, as(alice.token))).toEqual({
      where: 'account',
      n: 1.5,
      nested: [null, { a: true }],
    })
    expect(await api.call('GET', inRoom, as(alice.token))).toEqual({ where: 'room' })
  })

  it('is read in the order of writing, each piece once, at its newest', async () => {
    const nid = (await server.services.sessions.find(alice.token))?.userNid as number
    await api.call('PUT', global, as(alice.token, { where: 'later' }))
    const rows = await accountDataBetween(server.db, nid, 0, Number.MAX_SAFE_INTEGER)
    expect(rows.map(({ room_id, content }) => [room_id, content.where])).toEqual([
      ['!room:localhost', 'room'],
      ['', 'later'],
    ])
    const [first] = rows
    expect(await accountDataBetween(server.db, nid, first?.position as number, Number.MAX_SAFE_INTEGER)).toHaveLength(1)
  })

  it("is nobody else's", async () => {
    for (const path of [global, inRoom]) {
      expect((await api.request('GET', path, as(bob.token))).status).toBe(403)
      expect((await api.request('PUT', path, as(bob.token, {}))).status).toBe(403)
    }
  })

  it('of a user is 10,000 pieces at most; what is there can still be changed (62)', async () => {
    const carol = await register(api, 'carol')
    const nid = (await server.services.sessions.find(carol.token))?.userNid as number
    await server.db.query(
      `INSERT INTO account_data (user_nid, room_id, type, content, position)
       SELECT $1, '', 'seeded.' || n, '{}', 1 FROM generate_series(1, $2) AS n`,
      [nid, MAX_ACCOUNT_DATA_PER_USER - 1],
    )
    const put = async (path: string) =>
      (await api.request('PUT', `/user/${carol.userId}${path}`, as(carol.token, {}))).status
    expect(await put('/account_data/one.more')).toBe(200)
    expect(await put('/account_data/too.many')).toBe(403)
    expect(await put('/rooms/!room:localhost/account_data/too.many')).toBe(403)
    expect(await put('/account_data/one.more')).toBe(200)
  })

  it('A4: a piece of account data has 64 KiB at most', async () => {
    const put = (path: string, bytes: number) =>
      api.request('PUT', path, as(alice.token, { text: 'é'.repeat((bytes - 11) / 2) }))
    const before = await reached(server.metrics.text(), 'account data')
    for (const path of [global, inRoom]) {
      expect(await put(path, MAX_ACCOUNT_DATA_BYTES - 1)).toMatchObject({ status: 200 })
      expect(await put(path, MAX_ACCOUNT_DATA_BYTES + 1)).toMatchObject({
        status: 413,
        body: { errcode: 'M_TOO_LARGE', error: expect.stringContaining('65536') },
      })
    }
    expect((await reached(server.metrics.text(), 'account data')) - before).toBe(2)
  })

  it('A4: all account data of a user has 10 MiB at most, however many pieces are written at once', async () => {
    const dora = await register(api, 'dora')
    const data = { text: 'x'.repeat(60_000) }
    const put = (type: string, body: Json = data) =>
      api.request('PUT', `/user/${dora.userId}/account_data/${type}`, as(dora.token, body))
    const answers = await mapConcurrently(Array.from({ length: 200 }), 16, (_, index) => put(`fill.${index}`))
    const kept = answers.filter(({ status }) => status === 200).length
    expect(kept).toBeLessThanOrEqual(MAX_ACCOUNT_DATA_BYTES_PER_USER / 60_000)
    expect(kept).toBeGreaterThan(MAX_ACCOUNT_DATA_BYTES_PER_USER / 60_000 - 20)
    const refused = answers.findIndex(({ status }) => status !== 200)
    expect(answers[refused]).toMatchObject({ status: 413, body: { errcode: 'M_TOO_LARGE' } })
    const own = answers.findIndex(({ status }) => status === 200)
    expect((await put(`fill.${own}`)).status).toBe(200)
    expect((await put(`fill.${own}`, {})).status).toBe(200)
    expect((await put(`fill.${refused}`)).status).toBe(200)
  })

  it('A4: is written as often as the rate limit allows, for the account and its rooms together', async () => {
    const slow = await startAccountServer({ rate_limits: { enabled: true, other: { per_second: 0.001, burst: 3 } } })
    const slowApi = openApi(slow.baseUrl)
    const erin = await register(slowApi, 'erin')
    const put = (path: string) => slowApi.request('PUT', `/user/${erin.userId}${path}`, as(erin.token, {}))
    const answers = [
      await put('/account_data/x'),
      await put('/account_data/y'),
      await put('/rooms/!room:localhost/account_data/x'),
      await put('/rooms/!room:localhost/account_data/x'),
      await put('/account_data/x'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429])
    expect(answers[4]!.body).toMatchObject({ errcode: 'M_LIMIT_EXCEEDED', retry_after_ms: expect.any(Number) })
    const read = await slowApi.request('GET', `/user/${erin.userId}/account_data/x`, as(erin.token))
    expect(read.status).toBe(200)
    await slowApi.close()
    await slow.close()
  })

  it('leaves to the server what the server writes', async () => {
    for (const type of ['m.fully_read', 'm.push_rules']) {
      const path = `/user/@alice:localhost/account_data/${type}`
      const answer = await api.request('PUT', path, as(alice.token, {}))
      expect(answer).toMatchObject({ status: 405, body: { errcode: 'M_BAD_JSON' } })
    }
    const rules = await api.call('GET', '/user/@alice:localhost/account_data/m.push_rules', as(alice.token))
    expect(rules).toEqual(await api.call('GET', '/pushrules/', as(alice.token)))
  })

  it('wants a room id where one belongs', async () => {
    const answer = await api.request('PUT', '/user/@alice:localhost/rooms/room/account_data/x', as(alice.token, {}))
    expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
  })
})

describe('filters', () => {
  const path = (user = 'alice') => `/user/@${user}:localhost/filter`
  const definition = {
    room: { timeline: { limit: 10, types: ['m.room.*'], not_senders: ['@spam:localhost'] }, include_leave: true },
    event_fields: ['type', 'content.body', 'content.m\\.relates_to'],
    org_unknown: { kept: true },
  }

  it('are kept as they were given, once per definition', async () => {
    const { filter_id } = await api.call('POST', path(), as(alice.token, definition))
    expect(filter_id).toMatch(/^\d+$/)
    expect(await api.call('GET', `${path()}/${filter_id}`, as(alice.token))).toEqual(definition)
    expect(await api.call('POST', path(), as(alice.token, definition))).toEqual({ filter_id })
    const { filter_id: other } = await api.call('POST', path('bob'), as(bob.token, definition))
    expect(other).not.toBe(filter_id)
    expect((await api.request('GET', `${path('bob')}/${filter_id}`, as(bob.token))).status).toBe(404)
    expect((await api.request('GET', `${path()}/${filter_id}`, as(bob.token))).status).toBe(403)
  })

  it('are refused when they are longer than clients have use for; long ones work', async () => {
    const rooms = (count: number) => ({
      room: { rooms: Array.from({ length: count }, (_, n) => `!room${n}:localhost`) },
    })
    const refused = await api.request('POST', path(), as(alice.token, rooms(4_000)))
    expect(refused).toMatchObject({ status: 413, body: { errcode: 'M_TOO_LARGE' } })
    const { filter_id } = await api.call('POST', path(), as(alice.token, rooms(2_000)))
    const nid = (await server.services.sessions.find(alice.token))?.userNid as number
    const { room } = await server.services.filters.compiled(nid, filter_id)
    expect([room.roomMatches('!room7:localhost'), room.roomMatches('!room2000:localhost')]).toEqual([true, false])
  })

  it('are ready to be applied', async () => {
    const nid = (await server.services.sessions.find(alice.token))?.userNid as number
    const { filter_id } = await api.call('POST', path(), as(alice.token, definition))
    const { timeline } = (await server.services.filters.compiled(nid, filter_id)).room
    expect(timeline.limit).toBe(10)
    const message = { type: 'm.room.message', sender: '@bob:localhost', content: {} }
    expect(timeline.eventMatches(message)).toBe(true)
    expect(timeline.eventMatches({ ...message, sender: '@spam:localhost' })).toBe(false)
  })

  it.each(['0', '-1', 'abc', '999999999999', '99999999999999999999', '{}'])('are not found by %s', async (id) => {
    const answer = await api.request('GET', `${path()}/${encodeURIComponent(id)}`, as(alice.token))
    expect(answer).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
  })

  it('are checked', async () => {
    const bad = await api.request('POST', path(), as(alice.token, { room: { timeline: { limit: 'ten' } } }))
    expect(bad).toMatchObject({ status: 400, body: { errcode: 'M_BAD_JSON' } })
    expect(bad.body.error).toContain('room.timeline.limit')
  })

  it('of a user are 500 at most: one more displaces the oldest (62)', async () => {
    const dave = await register(api, 'dave')
    const define = async (limit: number) =>
      (await api.call('POST', path('dave'), as(dave.token, { room: { timeline: { limit } } }))).filter_id
    const [first, second] = [await define(1), await define(2)]
    const nid = (await server.services.sessions.find(dave.token))?.userNid as number
    await server.db.query(
      `INSERT INTO sync_filter (user_nid, digest, definition)
       SELECT $1, sha256(n::text::bytea), '{}' FROM generate_series(1, $2) AS n`,
      [nid, MAX_FILTERS_PER_USER - 2],
    )
    const last = await define(3)
    const statusOf = async (id: string) => (await api.request('GET', `${path('dave')}/${id}`, as(dave.token))).status
    expect([await statusOf(first), await statusOf(second), await statusOf(last)]).toEqual([404, 200, 200])
    const [row] = await server.db.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM sync_filter WHERE user_nid = $1',
      [nid],
    )
    expect(row!.count).toBe(MAX_FILTERS_PER_USER)
  })
})

describe('push rules', () => {
  it('are read as a whole, by kind and one by one', async () => {
    const { global } = await api.call('GET', '/pushrules/', as(alice.token))
    expect(Object.keys(global).sort()).toEqual(['content', 'override', 'postcontent', 'room', 'sender', 'underride'])
    expect(await api.call('GET', '/pushrules/global/', as(alice.token))).toEqual(global)
    const [master] = global.override
    const path = '/pushrules/global/override/.m.rule.master'
    expect(await api.call('GET', path, as(alice.token))).toEqual(master)
    expect(await api.call('GET', `${path}/enabled`, as(alice.token))).toEqual({ enabled: false })
    expect(await api.call('GET', `${path}/actions`, as(alice.token))).toEqual({ actions: master.actions })
    for (const wrong of ['override/.m.rule.none', 'toString/.m.rule.master', 'underride/.m.rule.master']) {
      expect((await api.request('GET', `/pushrules/global/${wrong}`, as(alice.token))).status).toBe(404)
    }
  })
})

describe('what clients ask at their start', () => {
  it('is answered truthfully', async () => {
    const { capabilities } = await api.call('GET', '/capabilities', as(alice.token))
    expect(capabilities['m.room_versions']).toMatchObject({
      default: '11',
      available: { '1': 'stable', '12': 'stable' },
    })
    expect(capabilities['m.change_password']).toEqual({ enabled: true })
    expect(await api.request('GET', '/voip/turnServer', as(alice.token))).toMatchObject({ status: 403 })
    expect(await api.call('GET', '/pushers', as(alice.token))).toEqual({ pushers: [] })
    expect(await api.call('GET', '/thirdparty/protocols', as(alice.token))).toEqual({})
    const rtc = await api.request('GET', '/_matrix/client/unstable/org.matrix.msc4143/rtc/transports', as(alice.token))
    expect(rtc).toMatchObject({ status: 404, body: { errcode: 'M_UNRECOGNIZED' } })
  })
})
