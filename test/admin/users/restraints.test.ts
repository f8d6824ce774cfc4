import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Endpoint } from '../../../src/http/endpoint.ts'
import { type Account, createRoom, join, PASSWORD, sendText } from '../../support/api.ts'
import { CLIENT_API } from '../../support/interfaces.ts'
import { type Answer, type Office, openOffice } from '../office.ts'

let office: Office
let user: Account
let counter = 0
const enc = encodeURIComponent
const ADMIN = '/_matrix/client/v1/admin'

beforeAll(async () => {
  office = await openOffice()
})
afterAll(() => office.close())
beforeEach(async () => {
  user = await office.person(`restrained${counter++}`)
})

const outcome = ({ status, body }: Answer) => [status, body.errcode]
const put = (what: 'lock' | 'suspend', whom: string, body: object, token?: string) =>
  office.ask('PUT', `${ADMIN}/${what}/${enc(whom)}`, body, token)
const get = (what: 'lock' | 'suspend', whom: string, token?: string) =>
  office.ask('GET', `${ADMIN}/${what}/${enc(whom)}`, undefined, token)
const lock = (locked: boolean) => put('lock', user.userId, { locked })
const suspend = (suspended: boolean) => put('suspend', user.userId, { suspended })
const as = (method: string, path: string, body?: object) =>
  office.api.request(method, path, { token: user.token, ...(body && { body }) })
const login = (body: object = {}) => {
  const identifier = { type: 'm.id.user', user: user.userId }
  return office.api.request('POST', '/login', {
    body: { type: 'm.login.password', identifier, password: PASSWORD, ...body },
  })
}

describe.each(['lock', 'suspend'] as const)('PUT and GET admin/%s/{userId}', (what) => {
  const key = what === 'lock' ? 'locked' : 'suspended'

  it('sets it, and tells', async () => {
    expect(await get(what, user.userId)).toEqual({ status: 200, body: { [key]: false } })
    expect(await put(what, user.userId, { [key]: true })).toEqual({ status: 200, body: { [key]: true } })
    expect(await get(what, user.userId)).toEqual({ status: 200, body: { [key]: true } })
    expect((await office.call('GET', `/v2/users/${enc(user.userId)}`))[key]).toBe(true)
    expect(await put(what, user.userId, { [key]: false })).toEqual({ status: 200, body: { [key]: false } })
  })

  it('403 M_FORBIDDEN for who is no administrator, before anything is looked up', async () => {
    for (const whom of [user.userId, '@nobody:localhost', '@elsewhere:example.org']) {
      expect(outcome(await put(what, whom, { [key]: true }, user.token))).toEqual([403, 'M_FORBIDDEN'])
      expect(outcome(await get(what, whom, user.token))).toEqual([403, 'M_FORBIDDEN'])
    }
  })

  it('403 M_FORBIDDEN for oneself and for other administrators', async () => {
    await office.call('PUT', `/v1/users/${enc(user.userId)}/admin`, { admin: true })
    for (const whom of [office.boss.userId, user.userId]) {
      expect(outcome(await put(what, whom, { [key]: true }))).toEqual([403, 'M_FORBIDDEN'])
    }
    expect(outcome(await get(what, user.userId))).toEqual([403, 'M_FORBIDDEN'])
  })

  it('400 M_INVALID_PARAM for users of other servers, 404 M_NOT_FOUND for nobody and for who is deactivated', async () => {
    await office.call('POST', `/v1/deactivate/${enc(user.userId)}`, {})
    const cases = [
      ['@elsewhere:example.org', 400, 'M_INVALID_PARAM'],
      ['@nobody:localhost', 404, 'M_NOT_FOUND'],
      [user.userId, 404, 'M_NOT_FOUND'],
    ] as const
    for (const [whom, ...refusal] of cases) {
      expect(outcome(await put(what, whom, { [key]: true }))).toEqual(refusal)
      expect(outcome(await get(what, whom))).toEqual(refusal)
    }
  })
})

it('the paths that tools know', async () => {
  const suspended = await office.ask('PUT', `/v1/suspend/${enc(user.userId)}`, { suspend: true })
  expect(suspended).toEqual({ status: 200, body: { [`user_${user.userId}_suspended`]: true } })
  await office.call('PUT', `/v2/users/${enc(user.userId)}`, { locked: true })
  expect(outcome(await as('GET', '/account/whoami'))).toEqual([401, 'M_USER_LOCKED'])
  const names = async (query: string) =>
    (await office.call('GET', `/v3/users?limit=1000${query}`)).users.map(({ name }: { name: string }) => name)
  expect(await names('')).not.toContain(user.userId)
  expect(await names('&locked=true')).toContain(user.userId)
  await office.call('PUT', `/v2/users/${enc(user.userId)}`, { locked: false })
  expect((await as('GET', '/account/whoami')).status).toBe(200)
})

it('administrators are told that they may', async () => {
  const of = async (token: string) =>
    (await office.api.call('GET', '/capabilities', { token })).capabilities['m.account_moderation']
  expect(await of(office.boss.token)).toEqual({ suspend: true, lock: true })
  expect(await of(user.token)).toBeUndefined()
})

describe('a locked account', () => {
  it('401 M_USER_LOCKED with soft_logout wherever a token is wanted, and its sessions go on afterwards', async () => {
    const calls = CLIENT_API.filter(({ options }) => options.auth === 'user' && !options.locked)
    await lock(true)
    for (const { method, path } of calls) {
      const { status, body } = await as(method, urlOf(path), method === 'GET' ? undefined : {})
      expect([path, status, body.errcode, body.soft_logout]).toEqual([path, 401, 'M_USER_LOCKED', true])
    }
    await lock(false)
    expect((await as('GET', '/account/whoami')).status).toBe(200)
  })

  it('may log out, and log out everywhere', async () => {
    await login({ device_id: 'OTHER' })
    await lock(true)
    expect((await as('POST', '/logout', {})).status).toBe(200)
    await lock(false)
    user = { ...user, token: (await login()).body.access_token }
    await lock(true)
    expect((await as('POST', '/logout/all', {})).status).toBe(200)
    expect((await as('POST', '/logout/all', {})).body.errcode).toBe('M_UNKNOWN_TOKEN')
  })

  it('opens to nobody: not by password, login token or refresh token', async () => {
    const refreshing = (await login({ refresh_token: true })).body.refresh_token
    const [{ user_nid }] = (await office.server.database.db.query(
      'SELECT user_nid FROM matrix_user WHERE user_id = $1',
      [user.userId],
    )) as [{ user_nid: number }]
    const { token } = await office.server.services.loginTokens.issue(user_nid)
    await lock(true)
    expect(outcome(await login())).toEqual([401, 'M_USER_LOCKED'])
    expect(outcome(await login({ password: 'wrong' }))).toEqual([403, 'M_FORBIDDEN'])
    const byToken = () => office.api.request('POST', '/login', { body: { type: 'm.login.token', token } })
    expect(outcome(await byToken())).toEqual([401, 'M_USER_LOCKED'])
    const refresh = () => office.api.request('POST', '/refresh', { body: { refresh_token: refreshing } })
    expect(outcome(await refresh())).toEqual([401, 'M_USER_LOCKED'])
    await lock(false)
    expect((await refresh()).status).toBe(200)
    expect((await byToken()).status).toBe(200)
  })

  it('stays locked over a restart', async () => {
    await lock(true)
    await office.server.restart()
    expect(outcome(await as('GET', '/sync?timeout=0'))).toEqual([401, 'M_USER_LOCKED'])
  })
})

/** A path of some operation, with parameters that are of the right form. */
function urlOf(path: string): string {
  const values: Record<string, string> = {
    userId: user.userId,
    roomId: '!r:localhost',
    eventId: '$e',
    roomAlias: '#a:localhost',
  }
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => enc(values[name] ?? 'x'))
  return filled
    .replace(/^C\//, '/')
    .replace(/^C1\//, '/_matrix/client/v1/')
    .replace(/^CU\//, '/_matrix/client/unstable/')
    .replace(/^client\//, '/_matrix/client/')
    .replace(/^M\//, '/_matrix/media/v3/')
    .replace(/^media\//, '/_matrix/media/')
}

const writes = CLIENT_API.filter(({ method, options }) => options.auth === 'user' && method !== 'GET')
const line = ({ method, path }: Endpoint) => `${method} ${path}`

describe('a suspended account', () => {
  it('403 M_USER_SUSPENDED for everything that tells others something', async () => {
    const refused = writes.filter(({ options }) => !options.suspended)
    await suspend(true)
    for (const endpoint of refused) {
      const { status, body } = await as(endpoint.method, urlOf(endpoint.path), {})
      expect([line(endpoint), status, body.errcode]).toEqual([line(endpoint), 403, 'M_USER_SUSPENDED'])
    }
    // What the specification names.
    expect(refused.map(line)).toEqual(
      expect.arrayContaining([
        'POST C/createRoom',
        'POST C/join/{roomIdOrAlias}',
        'POST C/rooms/{roomId}/invite',
        'PUT C/rooms/{roomId}/send/{eventType}/{txnId}',
        'PUT C/rooms/{roomId}/state/{eventType}/{stateKey}',
        'PUT C/profile/{userId}/{keyName}',
        'POST C/account/3pid/delete',
      ]),
    )
  })

  it('reads, logs in, keeps its keys, leaves, redacts what is its own, logs out, and ends its account', async () => {
    const { api, boss } = office
    const room = await createRoom(api, boss.token, { preset: 'public_chat' })
    await join(api, user.token, room)
    const own = await sendText(api, user.token, room, '1', 'regretted')
    const other = await sendText(api, boss.token, room, '1', 'seen')
    await api.call('PUT', `/rooms/${enc(room)}/state/m.room.power_levels/`, {
      token: boss.token,
      body: { users: { [user.userId]: 100 } },
    })
    await suspend(true)
    const statusOf = async (method: string, path: string, body?: object) => (await as(method, path, body)).status
    expect(await statusOf('GET', '/sync?timeout=0')).toBe(200)
    expect(await statusOf('GET', `/rooms/${enc(room)}/messages?dir=b`)).toBe(200)
    expect((await login()).status).toBe(200)
    expect(await statusOf('POST', '/keys/query', { device_keys: {} })).toBe(200)
    expect(await statusOf('PUT', '/sendToDevice/m.key.verification.cancel/1', { messages: {} })).toBe(200)
    const backup = {
      algorithm: 'm.megolm_backup.v1.curve25519-aes-sha2',
      auth_data: { public_key: 'x', signatures: {} },
    }
    expect(await statusOf('POST', '/room_keys/version', backup)).toBe(200)
    expect(await statusOf('PUT', `/rooms/${enc(room)}/redact/${enc(own)}/1`, {})).toBe(200)
    expect(outcome(await as('PUT', `/rooms/${enc(room)}/redact/${enc(other)}/2`, {}))).toEqual([
      403,
      'M_USER_SUSPENDED',
    ])
    expect(await statusOf('POST', `/rooms/${enc(room)}/leave`, {})).toBe(200)
    const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: user.userId }, password: PASSWORD }
    expect(await statusOf('POST', '/account/deactivate', { auth })).toBe(200)
  })

  it('is released at once', async () => {
    await suspend(true)
    expect(outcome(await as('POST', '/createRoom', {}))).toEqual([403, 'M_USER_SUSPENDED'])
    await suspend(false)
    expect((await as('POST', '/createRoom', {})).status).toBe(200)
  })
})
