import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registerBySecret, SECRET } from '../admin/office.ts'
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
import { startCuttable } from '../support/cuttable.ts'
import { createTestDatabase } from '../support/database.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'

/** What a node that stands by answers must be what the node that serves would answer: for each kind of what the latter has in memory. */

let server: TestServer
/** The node that serves. Everything that changes something is asked of it. */
let api: Api
let alice: Account
let bob: Account
let servingIds: string
let count = 0

const idsOf = (answer: Response) => answer.headers.get('x-request-id')?.split('-')[0] ?? ''

interface Read {
  readonly status: number
  readonly body: Json
  /** Whether the node that stands by made the answer itself. */
  readonly isOwn: boolean
}

/** Asks the node that stands by. */
async function ask({ token }: Pick<Account, 'token'>, path: string, body?: unknown): Promise<Read> {
  const url = `${server.standbyUrl}${path.startsWith('/_') ? '' : '/_matrix/client/v3'}${path}`
  const asking = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const answer = await fetch(url, { ...asking, headers: { authorization: `Bearer ${token}` } })
  return { status: answer.status, body: await answer.json(), isOwn: idsOf(answer) !== servingIds }
}

/** The answer, which the node that stands by must have made itself. */
async function read(by: Pick<Account, 'token'>, path: string, asked?: unknown): Promise<Json> {
  const first = await ask(by, path, asked)
  // Of a test that takes long, another request of the device may be passed on.
  const { status, body, isOwn } = first.isOwn ? first : await ask(by, path, asked)
  expect({ path, status, isOwn }).toEqual({ path, status: 200, isOwn: true })
  return body
}

/** The status of an answer that is none: only the node that serves gives it. */
async function refusal(by: Pick<Account, 'token'>, path: string): Promise<number> {
  const { status, isOwn } = await ask(by, path)
  expect({ path, isOwn }).toEqual({ path, isOwn: false })
  return status
}

/** Once a minute a request of a device is passed on, so that it is recorded as seen: the first one is. */
async function known<By extends Pick<Account, 'token'>>(by: By): Promise<By> {
  expect(await ask(by, '/joined_rooms')).toMatchObject({ status: 200, isOwn: false })
  return by
}

const person = async (name: string): Promise<Account> => known(await register(api, name))

const of = (room: string, rest: string) => `/rooms/${encodeURIComponent(room)}${rest}`
const events = async (by: Account, room: string): Promise<Json[]> =>
  (await read(by, of(room, '/messages?dir=b&limit=50'))).chunk
const bodies = async (by: Account, room: string): Promise<string[]> =>
  (await events(by, room)).flatMap(({ type, content }) => (type === 'm.room.message' ? (content.body ?? '-') : []))
const say = (by: Account, room: string, text: string) => sendText(api, by.token, room, `t${++count}`, text)
const setState = (room: string, type: string, content: object) =>
  api.call('PUT', of(room, `/state/${type}/`), { token: alice.token, body: content })
const act = (room: string, what: string, user_id: string) =>
  api.call('POST', of(room, `/${what}`), { token: alice.token, body: { user_id } })

async function sharedRoom(): Promise<string> {
  const room = await createRoom(api, alice.token, { preset: 'public_chat' })
  await join(api, bob.token, room)
  return room
}

beforeAll(async () => {
  server = await startServer({ registration: { shared_secret: SECRET, enabled: true } }, { hasStandby: true })
  api = openApi(server.baseUrl)
  const answer = await fetch(`${server.baseUrl}/_matrix/client/versions`)
  servingIds = idsOf(answer)
  alice = await person('alice')
  bob = await person('bob')
})
afterAll(async () => {
  await api.close()
  await server.close()
})

describe('rooms', () => {
  it('an event, its surroundings, the history, state and members are read where they are not written', async () => {
    const room = await sharedRoom()
    const first = await say(alice, room, 'one')
    expect((await read(bob, of(room, `/event/${first}`))).content.body).toBe('one')
    expect((await read(bob, of(room, `/context/${first}`))).event.event_id).toBe(first)
    expect(await bodies(bob, room)).toEqual(['one'])
    expect((await read(bob, of(room, '/state/m.room.create'))).room_version).toBeDefined()
    const types = (await read(bob, of(room, '/state'))).map(({ type }: Json) => type)
    expect(types).toEqual(expect.arrayContaining(['m.room.create', 'm.room.member', 'm.room.power_levels']))
    expect((await read(bob, of(room, '/members?membership=join'))).chunk).toHaveLength(2)
    expect(Object.keys((await read(bob, of(room, '/joined_members'))).joined)).toHaveLength(2)
    expect((await read(bob, '/joined_rooms')).joined_rooms).toContain(room)
  })

  it('every answer is as the node that serves would give it', async () => {
    const room = await sharedRoom()
    const root = await say(alice, room, 'a root')
    const inThread = { 'm.relates_to': { rel_type: 'm.thread', event_id: root }, msgtype: 'm.text', body: 'a reply' }
    await api.call('PUT', of(room, '/send/m.room.message/reply'), { token: bob.token, body: inThread })
    await setState(room, 'm.room.topic', { topic: 'first' })
    await setState(room, 'm.room.topic', { topic: 'second' })
    const withoutAge = (body: Json) => JSON.parse(JSON.stringify(body, (key, value) => (key === 'age' ? 0 : value)))
    const paths = [
      '/messages?dir=b',
      '/messages?dir=f&limit=3',
      `/context/${root}?limit=4`,
      `/event/${root}`,
      '/state',
      '/members',
    ]
    for (const path of paths) {
      const there = await api.call('GET', of(room, path), { token: bob.token })
      expect(withoutAge(await read(bob, of(room, path)))).toEqual(withoutAge(there))
    }
  })

  it('what was just written is read at once, again and again', async () => {
    const room = await sharedRoom()
    const written: string[] = []
    for (let n = 0; n < 20; n++) {
      await say(alice, room, `m${n}`)
      written.unshift(`m${n}`)
      expect(await bodies(bob, room)).toEqual(written)
      await setState(room, 'm.room.topic', { topic: `t${n}` })
      expect(await read(bob, of(room, '/state/m.room.topic'))).toEqual({ topic: `t${n}` })
    }
  })

  it('a redaction is seen, in the event and where the event is part of another answer', async () => {
    const room = await sharedRoom()
    const secret = await say(alice, room, 'a secret')
    expect(await bodies(bob, room)).toEqual(['a secret'])
    expect((await read(bob, of(room, `/event/${secret}`))).content.body).toBe('a secret')
    await api.call('PUT', of(room, `/redact/${secret}/r${++count}`), { token: alice.token, body: {} })
    expect((await read(bob, of(room, `/event/${secret}`))).content).toEqual({})
    expect(JSON.stringify(await events(bob, room))).not.toContain('a secret')
    expect(JSON.stringify(await read(bob, of(room, `/context/${secret}`)))).not.toContain('a secret')
  })

  it('threads and what relates to an event', async () => {
    const room = await sharedRoom()
    const root = await say(alice, room, 'root')
    const path = `/_matrix/client/v1/rooms/${encodeURIComponent(room)}`
    const replies: string[] = []
    for (let n = 0; n < 3; n++) {
      const body = { msgtype: 'm.text', body: `r${n}`, 'm.relates_to': { rel_type: 'm.thread', event_id: root } }
      const sent = await api.call('PUT', of(room, `/send/m.room.message/r${++count}`), { token: bob.token, body })
      replies.unshift(sent.event_id)
      const { chunk } = await read(alice, `${path}/relations/${root}/m.thread`)
      expect(chunk.map(({ event_id }: Json) => event_id)).toEqual(replies)
      const [thread] = (await read(alice, `${path}/threads`)).chunk
      expect(thread.unsigned['m.relations']['m.thread']).toMatchObject({ count: n + 1 })
    }
  })

  it('an edit is bundled with its event once it is there', async () => {
    const room = await sharedRoom()
    const edited = await say(alice, room, 'before')
    expect((await read(bob, of(room, `/event/${edited}`))).unsigned['m.relations']).toBeUndefined()
    const body = {
      msgtype: 'm.text',
      body: '* after',
      'm.new_content': { msgtype: 'm.text', body: 'after' },
      'm.relates_to': { rel_type: 'm.replace', event_id: edited },
    }
    await api.call('PUT', of(room, `/send/m.room.message/e${++count}`), { token: alice.token, body })
    const { unsigned } = await read(bob, of(room, `/event/${edited}`))
    expect(unsigned['m.relations']['m.replace'].content['m.new_content'].body).toBe('after')
  })

  it('who is removed reads nothing that comes after, and who is let in reads', async () => {
    const room = await createRoom(api, alice.token, { preset: 'private_chat' })
    await setState(room, 'm.room.history_visibility', { history_visibility: 'joined' })
    expect(await refusal(bob, of(room, '/messages?dir=b'))).toBe(403)
    await act(room, 'invite', bob.userId)
    await join(api, bob.token, room)
    await say(alice, room, 'for both')
    expect(await bodies(bob, room)).toEqual(['for both'])
    await act(room, 'kick', bob.userId)
    const hidden = await say(alice, room, 'for alice')
    await setState(room, 'm.room.topic', { topic: 'for alice' })
    expect(await bodies(bob, room)).toEqual(['for both'])
    expect(await refusal(bob, of(room, `/event/${hidden}`))).toBe(404)
    expect(await refusal(bob, of(room, '/state/m.room.topic'))).toBe(404)
    expect(await refusal(bob, of(room, '/joined_members'))).toBe(403)
    expect((await read(bob, '/joined_rooms')).joined_rooms).not.toContain(room)
    await api.call('POST', of(room, '/forget'), { token: bob.token, body: {} })
    expect(await refusal(bob, of(room, '/messages?dir=b'))).toBe(403)
  })

  it('history visibility counts from the moment at which it is set', async () => {
    const room = await createRoom(api, alice.token, { preset: 'public_chat' })
    await setState(room, 'm.room.history_visibility', { history_visibility: 'world_readable' })
    await say(alice, room, 'for the world')
    expect(await bodies(bob, room)).toEqual(['for the world'])
    await setState(room, 'm.room.history_visibility', { history_visibility: 'joined' })
    const hidden = await say(alice, room, 'for members')
    expect(await refusal(bob, of(room, `/event/${hidden}`))).toBe(404)
    expect(await refusal(bob, of(room, '/messages?dir=b'))).toBe(403)
    await join(api, bob.token, room)
    expect(await bodies(bob, room)).toEqual(['for the world'])
  })

  it('a room that was removed is gone', async () => {
    const boss = await registerBySecret(api, 'boss', true)
    const room = await sharedRoom()
    const event = await say(alice, room, 'gone soon')
    expect(await bodies(bob, room)).toEqual(['gone soon'])
    const path = `/_synapse/admin/v1/rooms/${encodeURIComponent(room)}`
    await api.call('DELETE', path, { token: boss.token, body: { purge: true } })
    expect(await refusal(bob, of(room, '/messages?dir=b'))).toBe(403)
    expect(await refusal(bob, of(room, `/event/${event}`))).toBe(404)
    expect((await read(bob, '/joined_rooms')).joined_rooms).not.toContain(room)
  })

  it('removed history is gone, and what may have been removed is read where it is served', async () => {
    const boss = await registerBySecret(api, 'archivist', true)
    const room = await sharedRoom()
    const old = await say(alice, room, 'old')
    const newest = await say(alice, room, 'the newest of the old ones')
    const kept = await say(alice, room, 'kept')
    expect(await bodies(bob, room)).toEqual(['kept', 'the newest of the old ones', 'old'])
    expect((await read(bob, of(room, `/event/${newest}`))).content.body).toBe('the newest of the old ones')
    const path = `/_synapse/admin/v1/purge_history/${encodeURIComponent(room)}/${encodeURIComponent(kept)}`
    const { purge_id } = await api.call('POST', path, { token: boss.token, body: { delete_local_events: true } })
    expect(await bodies(bob, room)).toEqual(['kept'])
    await waitUntil('the end of the purge', async () => {
      const status = await api.call('GET', `/_synapse/admin/v1/purge_history_status/${purge_id}`, { token: boss.token })
      return status.status === 'complete'
    })
    expect(await refusal(bob, of(room, `/event/${old}`))).toBe(404)
    // It marks how far its sender had read, so it stays without its content.
    const emptied = await ask(bob, of(room, `/event/${newest}`))
    expect(emptied).toMatchObject({ status: 200, isOwn: false })
    expect(emptied.body.content).toEqual({})
    expect(await bodies(bob, room)).toEqual(['kept'])
  })
})

describe('users', () => {
  it('a token that was revoked is refused at once', async () => {
    const { token } = await known(await login(api, 'bob'))
    await read({ token }, '/joined_rooms')
    await api.call('POST', '/logout', { token, body: {} })
    expect(await refusal({ token }, '/joined_rooms')).toBe(401)
  })

  it('an account that is locked or deactivated reads nothing more', async () => {
    const boss = await registerBySecret(api, 'warden', true)
    const carol = await person('carol')
    await read(carol, '/joined_rooms')
    const lock = `/_matrix/client/v1/admin/lock/${encodeURIComponent(carol.userId)}`
    await api.call('PUT', lock, { token: boss.token, body: { locked: true } })
    expect(await refusal(carol, '/joined_rooms')).toBe(401)
    await api.call('PUT', lock, { token: boss.token, body: { locked: false } })
    await read(carol, '/joined_rooms')
    const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'carol' }, password: PASSWORD }
    await api.call('POST', '/account/deactivate', { token: carol.token, body: { auth } })
    expect(await refusal(carol, '/joined_rooms')).toBe(401)
  })

  it('ignored users, and those who are not any more', async () => {
    const room = await sharedRoom()
    await say(bob, room, 'noise')
    expect(await bodies(alice, room)).toEqual(['noise'])
    const path = `/user/${encodeURIComponent(alice.userId)}/account_data/m.ignored_user_list`
    const ignore = (ignored_users: object) => api.call('PUT', path, { token: alice.token, body: { ignored_users } })
    await ignore({ [bob.userId]: {} })
    expect(await bodies(alice, room)).toEqual([])
    expect(await read(alice, path)).toEqual({ ignored_users: { [bob.userId]: {} } })
    await ignore({})
    expect(await bodies(alice, room)).toEqual(['noise'])
  })

  it('messages of an erased user are veiled for who came later', async () => {
    const dave = await person('dave')
    const room = await createRoom(api, alice.token, { preset: 'public_chat' })
    await join(api, dave.token, room)
    const said = await say(dave, room, 'forget me')
    expect((await read(alice, of(room, `/event/${said}`))).content.body).toBe('forget me')
    const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'dave' }, password: PASSWORD }
    await api.call('POST', '/account/deactivate', { token: dave.token, body: { auth, erase: true } })
    await join(api, bob.token, room)
    expect((await read(alice, of(room, `/event/${said}`))).content.body).toBe('forget me')
    expect((await read(bob, of(room, `/event/${said}`))).content).toEqual({})
    expect(JSON.stringify(await events(bob, room))).not.toContain('forget me')
  })

  it('profiles, capabilities, and whose a token is', async () => {
    const path = `/profile/${encodeURIComponent(alice.userId)}`
    for (const displayname of ['Alice', 'Alice again']) {
      await api.call('PUT', `${path}/displayname`, { token: alice.token, body: { displayname } })
      expect(await read(bob, path)).toEqual({ displayname })
      expect(await read(bob, `${path}/displayname`)).toEqual({ displayname })
    }
    expect(await read(alice, '/account/whoami')).toEqual(
      await api.call('GET', '/account/whoami', { token: alice.token }),
    )
    expect(await read(alice, '/capabilities')).toEqual(await api.call('GET', '/capabilities', { token: alice.token }))
  })

  it('keys of devices, as they are uploaded and removed', async () => {
    const heidi = await person('heidi')
    const asked = { device_keys: { [heidi.userId]: [] } }
    const query = async () => (await read(bob, '/keys/query', asked)).device_keys[heidi.userId] ?? {}
    expect(await query()).toEqual({})
    const device_keys = deviceMaker(heidi).identity()
    await api.call('POST', '/keys/upload', { token: heidi.token, body: { device_keys } })
    expect((await query())[heidi.deviceId]).toMatchObject(device_keys)
    expect(await read(bob, '/keys/query', asked)).toEqual(
      await api.call('POST', '/keys/query', { token: bob.token, body: asked }),
    )
    await api.call('POST', '/logout', { token: heidi.token, body: {} })
    expect(await query()).toEqual({})
    const elsewhere = { device_keys: { '@somebody:elsewhere.example': [] } }
    expect(await ask(bob, '/keys/query', elsewhere)).toMatchObject({ status: 200, isOwn: false })
    expect(await ask(bob, '/keys/query', { device_keys: 7 })).toMatchObject({ status: 400, isOwn: false })
    const long = { device_keys: { [bob.userId]: [] }, padding: 'x'.repeat(100_000) }
    expect(await ask(bob, '/keys/query', long)).toMatchObject({ status: 200, isOwn: false })
  })

  it('a backup of keys', async () => {
    const call = (method: string, path: string, body?: object) => api.call(method, path, { token: alice.token, body })
    const auth_data = { public_key: 'abc' }
    const { version } = await call('POST', '/room_keys/version', { algorithm: 'm.megolm_backup.v1', auth_data })
    expect(await read(alice, '/room_keys/version')).toMatchObject({ version, count: 0 })
    const key = { first_message_index: 0, forwarded_count: 0, is_verified: false, session_data: { n: 1 } }
    await call('PUT', `/room_keys/keys/${encodeURIComponent('!r:localhost')}/s?version=${version}`, key)
    expect(await read(alice, `/room_keys/version/${version}`)).toMatchObject({ version, count: 1 })
    const keys = { rooms: { '!r:localhost': { sessions: { s: key } } } }
    expect(await read(alice, `/room_keys/keys?version=${version}`)).toEqual(keys)
  })

  it('push rules, tags, account data, devices and filters', async () => {
    const of = (rest: string) => `/user/${encodeURIComponent(alice.userId)}${rest}`
    const rule = '/pushrules/global/content/kettle'
    expect(await refusal(alice, rule)).toBe(404)
    await api.call('PUT', rule, { token: alice.token, body: { pattern: 'kettle', actions: ['notify'] } })
    expect((await read(alice, rule)).pattern).toBe('kettle')
    await api.call('PUT', `${rule}/enabled`, { token: alice.token, body: { enabled: false } })
    expect(await read(alice, `${rule}/enabled`)).toEqual({ enabled: false })
    expect(await read(alice, '/pushrules/')).toEqual(await api.call('GET', '/pushrules/', { token: alice.token }))
    expect(await read(alice, of('/account_data/m.push_rules'))).toEqual(await read(alice, '/pushrules/'))
    await api.call('PUT', of('/account_data/org.test'), { token: alice.token, body: { n: 1 } })
    expect(await read(alice, of('/account_data/org.test'))).toEqual({ n: 1 })
    await api.call('PUT', of('/account_data/org.test'), { token: alice.token, body: { n: 2 } })
    expect(await read(alice, of('/account_data/org.test'))).toEqual({ n: 2 })
    const room = await sharedRoom()
    await api.call('PUT', of(`/rooms/${encodeURIComponent(room)}/tags/m.favourite`), { token: alice.token, body: {} })
    const { tags } = await read(alice, of(`/rooms/${encodeURIComponent(room)}/tags`))
    expect(tags).toEqual({ 'm.favourite': {} })
    await api.call('PUT', `/devices/${alice.deviceId}`, { token: alice.token, body: { display_name: 'a kettle' } })
    expect((await read(alice, `/devices/${alice.deviceId}`)).display_name).toBe('a kettle')
    const { filter_id } = await api.call('POST', of('/filter'), { token: alice.token, body: { room: { rooms: [] } } })
    expect(await read(alice, of(`/filter/${filter_id}`))).toEqual({ room: { rooms: [] } })
  })
})

describe('what is passed on', () => {
  it('is the first request of a device, which is then recorded as seen', async () => {
    const erin = await person('erin')
    await server.services.sessions.flush()
    const [device] = (await read(erin, '/devices')).devices
    expect(device.last_seen_ts).toBeGreaterThan(Date.now() - 60_000)
    expect(device.last_seen_ip).toBe('127.0.0.1')
  })

  it('is what writes, waits, or needs other servers', async () => {
    const room = await sharedRoom()
    const paths = ['/sync?timeout=0', of(room, '/aliases'), '/publicRooms', '/profile/@somebody:elsewhere.example']
    for (const path of paths) expect((await ask(bob, path)).isOwn).toBe(false)
  })

  it('is every request that gets an error', async () => {
    expect(await refusal({ token: 'nonsense' }, '/joined_rooms')).toBe(401)
    expect(await refusal(alice, of('!nowhere:localhost', '/state'))).toBe(403)
    expect(await refusal(alice, of('nonsense', '/state'))).toBe(400)
    expect(await refusal(alice, '/nonsense')).toBe(404)
  })

  it('has the headers that every answer has, once', async () => {
    const room = await sharedRoom()
    for (const path of [of(room, '/state'), of(room, '/event/$nothing')]) {
      const answer = await fetch(`${server.standbyUrl}/_matrix/client/v3${path}`, {
        headers: { authorization: `Bearer ${alice.token}` },
      })
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    }
  })
})

describe('rate limits', () => {
  it('are the same whichever node answers, and some of what they allow is answered by the node that stands by', async () => {
    const now = Date.now()
    const other = { per_second: 1, burst: 40 }
    const limited = await startServer(
      { rate_limits: { enabled: true, other } },
      { hasStandby: true, clock: { now: () => now } },
    )
    const { token } = await register(openApi(limited.baseUrl), 'frank')
    const headers = { authorization: `Bearer ${token}` }
    const call = async (base: string) => {
      const answer = await fetch(`${base}/_matrix/client/v3/account/whoami`, { headers })
      await answer.arrayBuffer()
      expect(answer.headers.has('x-hearth-ahead')).toBe(false)
      return { status: answer.status, by: idsOf(answer) }
    }
    const answers = []
    for (let n = 0; n < 60; n++) answers.push(await call(limited.standbyUrl))
    const allowed = answers.filter(({ status }) => status === 200)
    expect(allowed).toHaveLength(other.burst)
    expect(answers.slice(other.burst).every(({ status }) => status === 429)).toBe(true)
    const { by } = await call(limited.baseUrl)
    const own = allowed.filter((answer) => answer.by !== by)
    expect(own.length).toBeGreaterThan(10)
    await limited.close()
  })

  it('are paid once for a request that the node that stands by has begun and passes on', async () => {
    const now = Date.now()
    const other = { per_second: 1, burst: 40 }
    const limited = await startServer(
      { rate_limits: { enabled: true, other } },
      { hasStandby: true, clock: { now: () => now } },
    )
    const { token } = await register(openApi(limited.baseUrl), 'judy')
    const call = async (path: string) => {
      const answer = await fetch(`${limited.standbyUrl}/_matrix/client/v3${path}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      await answer.arrayBuffer()
      return answer.status
    }
    const statuses = []
    // The node that stands by finds no backup, and errors are for the other one to say.
    for (let n = 0; n < 30; n++) statuses.push(await call('/account/whoami'), await call('/room_keys/version'))
    expect(statuses.slice(0, other.burst)).toEqual(Array.from({ length: 20 }, () => [200, 404]).flat())
    expect(statuses.slice(other.burst)).toEqual(Array.from({ length: 20 }, () => 429))
    await limited.close()
  })
})

describe('without the database', () => {
  it('everything is passed on', async () => {
    const database = await createTestDatabase()
    const { host, port = 5432 } = database.connection
    const line = await startCuttable({ path: `${host}/.s.PGSQL.${port}` })
    const standbyConnection = { ...database.connection, host: '127.0.0.1', port: line.port }
    const cut = await startServer({}, { database, hasStandby: true, standbyConnection })
    const { token } = await register(openApi(cut.baseUrl), 'grace')
    const call = async () => {
      const answer = await fetch(`${cut.standbyUrl}/_matrix/client/v3/devices`, {
        headers: { authorization: `Bearer ${token}` },
      })
      await answer.arrayBuffer()
      return { status: answer.status, by: idsOf(answer) }
    }
    const { by } = await call()
    expect(await call()).toEqual({ status: 200, by: expect.not.stringMatching(by) })
    await line.close()
    for (let n = 0; n < 3; n++) expect(await call()).toEqual({ status: 200, by })
    await cut.close()
  })
})
