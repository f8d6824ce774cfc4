import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createUser } from '../../../src/domain/accounts/create-user.ts'
import { NONE_RESERVED } from '../../../src/domain/accounts/exclusive-users.ts'
import { isRegistrationOpen } from '../../../src/domain/accounts/registration-policy.ts'
import { insertRegistrationToken } from '../../../src/store/accounts/registration-tokens.ts'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type Api, type Json, mapConcurrently, openApi, PASSWORD } from '../../support/api.ts'

let server: AccountServer
let api: Api

beforeAll(async () => {
  server = await startAccountServer()
  api = openApi(server.baseUrl)
})

afterAll(async () => {
  await api.close()
  await server.close()
})

const DUMMY = { type: 'm.login.dummy' }
const register = (body: Json, at = api) => at.request('POST', '/register', { body })

describe('register', () => {
  it('asks for the dummy stage first, then makes account, device and token', async () => {
    const first = await register({ username: 'alice', password: PASSWORD })
    expect(first.status).toBe(401)
    expect(first.body).toEqual({
      flows: [{ stages: ['m.login.dummy'] }],
      params: {},
      completed: [],
      session: expect.stringMatching(/^[\w-]{20,}$/),
    })
    const auth = { ...DUMMY, session: first.body.session }
    const second = await register({ username: 'alice', password: PASSWORD, auth })
    expect(second.body).toEqual({
      user_id: '@alice:localhost',
      home_server: 'localhost',
      access_token: expect.stringMatching(/^hearth_[\w-]{43}_[0-9a-f]{8}$/),
      device_id: expect.stringMatching(/^[A-Z]{10}$/),
    })
    const me = await api.call('GET', '/account/whoami', { token: second.body.access_token })
    expect(me).toEqual({ user_id: '@alice:localhost', device_id: second.body.device_id, is_guest: false })
  })

  it('takes a probe with an empty body, and then the account in the session that it began', async () => {
    const probe = await register({})
    expect(probe.status).toBe(401)
    const answer = await register({
      username: 'probe',
      password: PASSWORD,
      auth: { ...DUMMY, session: probe.body.session },
    })
    expect(answer.status).toBe(200)
  })

  it('keeps the device id and name that the client chose', async () => {
    const { body } = await register({
      username: 'chooser',
      password: PASSWORD,
      device_id: 'Phone 1',
      initial_device_display_name: 'My phone',
      auth: DUMMY,
    })
    expect(body.device_id).toBe('Phone 1')
    const { devices } = await api.call('GET', '/devices', { token: body.access_token })
    expect(devices).toMatchObject([{ device_id: 'Phone 1', display_name: 'My phone' }])
  })

  it('makes no login where that is not wanted', async () => {
    const { status, body } = await register({ username: 'quiet', password: PASSWORD, inhibit_login: true, auth: DUMMY })
    expect(status).toBe(200)
    expect(body).toEqual({ user_id: '@quiet:localhost', home_server: 'localhost' })
  })

  it('chooses a name where none is given', async () => {
    const { body } = await register({ password: PASSWORD, auth: DUMMY })
    expect(body.user_id).toMatch(/^@u[0-9a-f]{16}:localhost$/)
  })

  it('puts names into lower case', async () => {
    const { body } = await register({ username: 'MixedCase', password: PASSWORD, auth: DUMMY })
    expect(body.user_id).toBe('@mixedcase:localhost')
  })

  const refused: [name: string, body: Json, errcode: string][] = [
    ['a name in use', { username: 'chooser', password: PASSWORD }, 'M_USER_IN_USE'],
    ['a name in use, in capitals', { username: 'CHOOSER', password: PASSWORD }, 'M_USER_IN_USE'],
    ['a name with a space', { username: 'a b', password: PASSWORD }, 'M_INVALID_USERNAME'],
    ['a name with a colon', { username: 'a:b', password: PASSWORD }, 'M_INVALID_USERNAME'],
    ['an empty name', { username: '', password: PASSWORD }, 'M_INVALID_USERNAME'],
    ['a name that is too long', { username: 'a'.repeat(250), password: PASSWORD }, 'M_INVALID_USERNAME'],
    ['a short password', { username: 'short', password: 'seven77' }, 'M_WEAK_PASSWORD'],
    ['a password beyond all bounds', { username: 'long', password: 'x'.repeat(513) }, 'M_WEAK_PASSWORD'],
    ['a device id with a NUL', { username: 'nul', password: PASSWORD, device_id: 'a\0' }, 'M_INVALID_PARAM'],
  ]
  it.each(refused)('refuses %s before any stage', async (_name, body, errcode) => {
    expect(await register(body)).toMatchObject({ status: 400, body: { errcode } })
  })

  it('refuses an account without a password', async () => {
    const answer = await register({ username: 'nopass', auth: DUMMY })
    expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_MISSING_PARAM' } })
    expect(await api.request('GET', '/register/available?username=nopass')).toMatchObject({ status: 200 })
  })

  it('makes one account for a name that many ask for at once', async () => {
    const body = { username: 'popular', password: PASSWORD, auth: DUMMY }
    const answers = await mapConcurrently(Array.from({ length: 8 }), 8, () => register(body))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const { status, body: error } of answers.filter((answer) => answer.status !== 200)) {
      expect([status, error.errcode]).toEqual([400, 'M_USER_IN_USE'])
    }
  })

  it('stores no password, no token and no password in a session', async () => {
    const { body } = await register({ username: 'secretive', password: 'canary-password-1', auth: DUMMY })
    await register({ username: 'halfway', password: 'canary-password-2', auth: { session: 'x', ...DUMMY } })
    const tables = await server.db.query<{ name: string }>(
      `SELECT table_name::text AS name FROM information_schema.tables WHERE table_schema = 'public'`,
    )
    for (const { name } of tables) {
      const rows = await server.db.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`)
      const text = rows.map(({ row }) => row).join('\n')
      expect(text).not.toContain('canary-password')
      expect(text).not.toContain(body.access_token)
      expect(text).not.toContain(Buffer.from(body.access_token).toString('hex'))
    }
    const [account] = await server.db.query<{ password_hash: string }>(
      `SELECT password_hash FROM account JOIN matrix_user USING (user_nid) WHERE user_id = '@secretive:localhost'`,
    )
    expect(account?.password_hash).toMatch(/^\$scrypt\$ln=4,r=8,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  })
})

describe('register/available', () => {
  it('says yes, taken, or not a name', async () => {
    expect(await api.call('GET', '/register/available?username=free')).toEqual({ available: true })
    const taken = await api.request('GET', '/register/available?username=Chooser')
    expect(taken).toMatchObject({ status: 400, body: { errcode: 'M_USER_IN_USE' } })
    const bad = await api.request('GET', '/register/available?username=%20')
    expect(bad).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_USERNAME' } })
  })
})

describe('guests', () => {
  it('get an account whatever they ask for, and may do little', async () => {
    const { body } = await api.request('POST', '/register?kind=guest', { body: { username: 'x', device_id: 'MINE' } })
    expect(body.user_id).toMatch(/^@guest-[0-9a-f]{16}:localhost$/)
    expect(body.device_id).not.toBe('MINE')
    const token = body.access_token
    expect(await api.call('GET', '/account/whoami', { token })).toMatchObject({ is_guest: true })
    const refused = await api.request('GET', '/account/3pid', { token })
    expect(refused).toMatchObject({ status: 403, body: { errcode: 'M_GUEST_ACCESS_FORBIDDEN' } })
  })

  it('are turned away where they are not welcome', async () => {
    const other = await startAccountServer({ registration: { enabled: true, allow_guests: false } })
    const at = openApi(other.baseUrl)
    const answer = await at.request('POST', '/register?kind=guest', { body: {} })
    expect(answer).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    await at.close()
    await other.close()
  })
})

describe('a guest who stays', () => {
  const guest = async () => (await api.request('POST', '/register?kind=guest', { body: {} })).body
  const stay = (guest_access_token: string, changes: Json = {}) =>
    register({ guest_access_token, password: PASSWORD, auth: DUMMY, ...changes })

  it('keeps the name and becomes a user; what the guest was trusted with ends', async () => {
    const { user_id, access_token } = await guest()
    const { status, body } = await stay(access_token, { username: user_id.slice(1, user_id.indexOf(':')) })
    expect([status, body.user_id]).toEqual([200, user_id])
    const me = await api.call('GET', '/account/whoami', { token: body.access_token })
    expect(me).toMatchObject({ user_id, is_guest: false })
    expect((await api.request('GET', '/account/whoami', { token: access_token })).status).toBe(401)
    const { devices } = await api.call('GET', '/devices', { token: body.access_token })
    expect(devices.map((device: Json) => device.device_id)).toEqual([body.device_id])
    const identifier = { type: 'm.id.user', user: user_id }
    const login = { type: 'm.login.password', identifier, password: PASSWORD }
    expect((await api.request('POST', '/login', { body: login })).status).toBe(200)
  })

  it('proves it by a token of its own, once', async () => {
    const { access_token } = await guest()
    const { body: user } = await register({ username: 'nobodysguest', password: PASSWORD, auth: DUMMY })
    const refusals: [answer: ReturnType<typeof stay>, status: number, errcode: string][] = [
      [stay('hearth_unknown'), 401, 'M_UNKNOWN_TOKEN'],
      [stay(user.access_token), 403, 'M_FORBIDDEN'],
      [stay(access_token, { username: 'othername' }), 403, 'M_FORBIDDEN'],
      [stay(access_token, { username: 'nobodysguest' }), 403, 'M_FORBIDDEN'],
    ]
    for (const [answer, status, errcode] of refusals) expect(await answer).toMatchObject({ status, body: { errcode } })
    const answers = await mapConcurrently(Array.from({ length: 6 }), 6, () => stay(access_token))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  })
})

describe('names of application services', () => {
  it('are theirs alone', async () => {
    const reserving = await startAccountServer(
      {},
      { exclusiveUsers: { isReserved: (userId) => userId.startsWith('@bridge_') } },
    )
    const at = openApi(reserving.baseUrl)
    const available = await at.request('GET', '/register/available?username=Bridge_1')
    expect(available).toMatchObject({ status: 400, body: { errcode: 'M_EXCLUSIVE' } })
    const answer = await register({ username: 'bridge_1', password: PASSWORD, auth: DUMMY }, at)
    expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_EXCLUSIVE' } })
    expect((await at.request('GET', '/register/available?username=bridge')).status).toBe(200)
    await at.close()
    await reserving.close()
  })
})

describe('a server that is full', () => {
  it('says whom to write to, and never takes more than it may', async () => {
    const full = await startAccountServer({
      registration: { enabled: true, max_users: 3 },
      well_known: { support_email: 'admin@example.org' },
    })
    const at = openApi(full.baseUrl)
    const answers = await mapConcurrently(Array.from({ length: 12 }), 12, (_, index) =>
      register({ username: `user${index}`, password: PASSWORD, auth: DUMMY }, at),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expect(answer).toMatchObject({
        status: 403,
        body: { errcode: 'M_RESOURCE_LIMIT_EXCEEDED', admin_contact: 'mailto:admin@example.org' },
      })
    }
    const guest = (await at.request('POST', '/register?kind=guest', { body: {} })).body
    const stay = await register({ guest_access_token: guest.access_token, password: PASSWORD, auth: DUMMY }, at)
    expect(stay.body.errcode).toBe('M_RESOURCE_LIMIT_EXCEEDED')
    await at.close()
    await full.close()
  })
})

describe('a token with 50 uses', () => {
  it('makes exactly 50 accounts when 1,000 use it at once, and counts nothing else', async () => {
    const party = await startAccountServer({ registration: { enabled: false } })
    const at = openApi(party.baseUrl)
    const token = 'fifty'
    await party.db.tx((tx) =>
      insertRegistrationToken(tx, { token, usesAllowed: 50, createdAt: 0, expiresAt: undefined }),
    )
    const auth = { type: 'm.login.registration_token', token }
    /** Whoever is told to wait, because too many passwords are being hashed, comes again. */
    const insist = async (username: string): ReturnType<typeof register> => {
      const answer = await register({ username, password: PASSWORD, auth }, at)
      return answer.status === 429 ? insist(username) : answer
    }
    const answers = await Promise.all(Array.from({ length: 1000 }, (_, index) => insist(`party${index}`)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(50)
    expect(answers.filter(({ status }) => status >= 500)).toEqual([])
    expect(await party.db.query('SELECT uses FROM registration_token')).toEqual([{ uses: 50 }])
    expect(await party.db.query('SELECT count(*) AS count FROM account')).toEqual([{ count: 50 }])
    await at.close()
    await party.close()
  })
})

describe('closed registration', () => {
  let closed: AccountServer
  let at: Api

  beforeAll(async () => {
    closed = await startAccountServer({ registration: { enabled: false } })
    at = openApi(closed.baseUrl)
  })

  afterAll(async () => {
    await at.close()
    await closed.close()
  })

  it('says so, and what can be done', async () => {
    const { status, body } = await register({}, at)
    expect([status, body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    expect(body.error).toContain('hearth user create')
  })

  it('lets the operator make accounts', async () => {
    const deps = { ...closed.services, db: closed.db, exclusiveUsers: NONE_RESERVED }
    const boss = await createUser(deps, { username: 'Boss', password: PASSWORD, isAdmin: true })
    expect(boss).toBe('@boss:localhost')
    expect(await closed.db.query('SELECT is_admin FROM account')).toEqual([{ is_admin: true }])
    const again = createUser(deps, { username: 'boss', password: PASSWORD, isAdmin: false })
    await expect(again).rejects.toMatchObject({ errcode: 'M_USER_IN_USE' })
  })

  it('opens for as many as a token allows, also when 50 use it at once', async () => {
    const token = 'party'
    await closed.db.tx((tx) =>
      insertRegistrationToken(tx, { token, usesAllowed: 3, createdAt: 0, expiresAt: Date.now() + 60_000 }),
    )
    const first = await register({}, at)
    expect(first.body.flows).toEqual([{ stages: ['m.login.registration_token'] }])
    const validity = '/_matrix/client/v1/register/m.login.registration_token/validity?token='
    expect(await at.call('GET', `${validity}party`)).toEqual({ valid: true })
    expect(await at.call('GET', `${validity}nonsense`)).toEqual({ valid: false })
    expect(await at.call('GET', `${validity}%00`)).toEqual({ valid: false })

    const wrong = await register(
      { username: 'w', password: PASSWORD, auth: { type: 'm.login.registration_token', token: 'no' } },
      at,
    )
    expect(wrong).toMatchObject({ status: 401, body: { errcode: 'M_UNAUTHORIZED', session: expect.any(String) } })
    const dummy = await register({ username: 'w', password: PASSWORD, auth: DUMMY }, at)
    expect(dummy.status).toBe(401)

    const answers = await mapConcurrently(Array.from({ length: 50 }), 50, (_, index) =>
      register(
        { username: `guest${index}`, password: PASSWORD, auth: { type: 'm.login.registration_token', token } },
        at,
      ),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
    const [row] = await closed.db.query(`SELECT uses FROM registration_token WHERE token = 'party'`)
    expect(row).toEqual({ uses: 3 })
    expect(await at.call('GET', `${validity}party`)).toEqual({ valid: false })
  })

  it('forgets a token when its time is over', async () => {
    await closed.db.tx((tx) =>
      insertRegistrationToken(tx, { token: 'old', usesAllowed: undefined, createdAt: 0, expiresAt: Date.now() - 1 }),
    )
    expect(await closed.services.registrationTokens.isValid('old')).toBe(false)
  })

  it('opens by the token in the configuration', async () => {
    const other = await startAccountServer({ registration: { enabled: false, token: 'configured' } })
    const api2 = openApi(other.baseUrl)
    const auth = { type: 'm.login.registration_token', token: 'configured' }
    const answer = await register({ username: 'carol', password: PASSWORD, auth }, api2)
    expect(answer.status).toBe(200)
    await api2.close()
    await other.close()
  })
})

describe('the policy "auto"', () => {
  const config = (changes: object) => ({
    registration: { enabled: 'auto' as const, require_token: false, allow_guests: true },
    listen: { host: '127.0.0.1', port: 8008, socket_mode: '660' },
    https: { host: '::', ports: [8448] },
    trusted_proxies: [],
    ...changes,
  })
  const cases: [name: string, changes: object, isForwarded: boolean, isOpen: boolean][] = [
    ['on loopback', {}, false, true],
    ['on IPv6 loopback', { listen: { host: '::1', port: 1 } }, false, true],
    ['on all addresses', { listen: { host: '0.0.0.0', port: 1 } }, false, false],
    ['on a unix socket', { listen: { host: '127.0.0.1', port: 1, socket: '/run/h.sock' } }, false, false],
    ['with HTTPS on all addresses', { https: { certificate_file: '/c.pem', host: '::' } }, false, false],
    ['with HTTPS on loopback', { https: { certificate_file: '/c.pem', host: '::1' } }, false, true],
    ['on a name', { listen: { host: 'localhost.example.org', port: 1 } }, false, false],
    ['behind a proxy that it trusts', { trusted_proxies: ['127.0.0.1'] }, false, false],
    ['with a public address', { public_base_url: 'https://m.example.org' }, false, false],
    ['with a loopback address', { public_base_url: 'http://localhost:8008' }, false, true],
    ['for a request that a proxy handed on', {}, true, false],
  ]
  it.each(cases)('%s', (_name, changes, isForwarded, isOpen) => {
    expect(isRegistrationOpen(config(changes), isForwarded)).toBe(isOpen)
  })
})
