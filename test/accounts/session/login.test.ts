import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPasswords } from '../../../src/domain/accounts/passwords.ts'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type Account, type Api, type Json, mapConcurrently, openApi, PASSWORD, register } from '../../support/api.ts'

const NO_POLICY = {
  min_length: 8,
  require_lowercase: false,
  require_uppercase: false,
  require_digit: false,
  require_symbol: false,
}

let server: AccountServer
let api: Api
let alice: Account

beforeAll(async () => {
  server = await startAccountServer()
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
})

afterAll(async () => {
  await api.close()
  await server.close()
})

const login = (body: Json) => api.request('POST', '/login', { body: { type: 'm.login.password', ...body } })
const whoami = (token: string) => api.request('GET', '/account/whoami', { token })
const asUser = (user: string) => ({ identifier: { type: 'm.id.user', user }, password: PASSWORD })

describe('login', () => {
  it('names its flows', async () => {
    expect(await api.call('GET', '/login')).toEqual({
      flows: [{ type: 'm.login.password' }, { type: 'm.login.token', get_login_token: true }],
    })
  })

  it.each(['alice', '@alice:localhost', 'Alice', '@ALICE:localhost'])(
    'knows %s by an identifier object',
    async (user) => {
      const { status, body } = await login(asUser(user))
      expect(status).toBe(200)
      expect(body).toMatchObject({ user_id: '@alice:localhost', home_server: 'localhost' })
      expect((await whoami(body.access_token)).body.device_id).toBe(body.device_id)
    },
  )

  it('knows the user key of older clients', async () => {
    expect((await login({ user: 'alice', password: PASSWORD })).status).toBe(200)
  })

  const refused: [name: string, body: Json, status: number, errcode: string][] = [
    ['a wrong password', { ...asUser('alice'), password: 'wrong password' }, 403, 'M_FORBIDDEN'],
    ['an empty password', { ...asUser('alice'), password: '' }, 403, 'M_FORBIDDEN'],
    ['an unknown user', asUser('nobody'), 403, 'M_FORBIDDEN'],
    ['a user of another server', asUser('@alice:elsewhere.org'), 403, 'M_FORBIDDEN'],
    ['no password', { identifier: { type: 'm.id.user', user: 'alice' } }, 400, 'M_MISSING_PARAM'],
    ['no user', { password: PASSWORD }, 400, 'M_MISSING_PARAM'],
    ['an unknown identifier', { identifier: { type: 'm.id.magic' }, password: PASSWORD }, 400, 'M_UNKNOWN'],
    ['an unknown type', { ...asUser('alice'), type: 'm.login.magic' }, 400, 'M_UNKNOWN'],
    ['an overlong device id', { ...asUser('alice'), device_id: 'x'.repeat(300) }, 400, 'M_INVALID_PARAM'],
  ]
  it.each(refused)('refuses %s', async (_name, body, status, errcode) => {
    expect(await login(body)).toMatchObject({ status, body: { errcode } })
  })

  it('says the same of an unknown user and of a wrong password', async () => {
    const wrong = await login({ ...asUser('alice'), password: 'wrong password' })
    expect((await login(asUser('nobody'))).body).toEqual(wrong.body)
  })

  it('takes the token from header and query, in both dialects', async () => {
    expect((await whoami(alice.token)).status).toBe(200)
    expect((await api.request('GET', `/account/whoami?access_token=${alice.token}`)).status).toBe(200)
    const lower = await fetch(`${server.baseUrl}/_proto/client/r0/account/whoami`, {
      headers: { authorization: `bearer ${alice.token}` },
    })
    expect(lower.status).toBe(200)
  })

  it('keeps one token per device: a new login ends the one before and keeps the name', async () => {
    const device = { ...asUser('alice'), device_id: 'LAPTOP' }
    const first = await login({ ...device, initial_device_display_name: 'Laptop' })
    expect((await whoami(first.body.access_token)).status).toBe(200)
    const second = await login({ ...device, initial_device_display_name: 'Other' })
    expect(second.body.device_id).toBe('LAPTOP')
    expect(await whoami(first.body.access_token)).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } })
    const found = await api.call('GET', '/devices/LAPTOP', { token: second.body.access_token })
    expect(found.display_name).toBe('Laptop')
    expect((await whoami(alice.token)).status).toBe(200)
  })

  it('leaves one live token after many logins of one device at once', async () => {
    const answers = await mapConcurrently(Array.from({ length: 8 }), 8, () =>
      login({ ...asUser('alice'), device_id: 'RACE' }),
    )
    for (const { status } of answers) expect(status).toBe(200)
    const live = await mapConcurrently(answers, 8, async ({ body }) => (await whoami(body.access_token)).status)
    expect(live.filter((status) => status === 200)).toHaveLength(1)
  })

  it('refuses a deactivated account, and its tokens', async () => {
    const gone = await register(api, 'gone')
    await server.db.tx((tx) =>
      tx.query(
        `UPDATE account SET deactivated_at = 1 WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)`,
        [gone.userId],
      ),
    )
    expect(await login(asUser('gone'))).toMatchObject({ status: 403, body: { errcode: 'M_USER_DEACTIVATED' } })
    expect((await login({ ...asUser('gone'), password: 'wrong password' })).body.errcode).toBe('M_FORBIDDEN')
    expect((await whoami(gone.token)).status).toBe(401)
  })

  it('hashes again at the cost of today', async () => {
    await register(api, 'veteran')
    const cheap = createPasswords({
      config: { passwords: { ...NO_POLICY, scrypt: { log2_cost: 2, block_size: 8, parallelism: 1 } } },
      random: { bytes: (count) => Buffer.alloc(count, 1) },
    })
    const hash = await cheap.hash(PASSWORD)
    await cheap.close()
    const set = `UPDATE account SET password_hash = $2 WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)`
    await server.db.tx((tx) => tx.query(set, ['@veteran:localhost', hash]))
    expect((await login(asUser('veteran'))).status).toBe(200)
    const [row] = await server.db.query<{ password_hash: string }>(
      `SELECT password_hash FROM account JOIN matrix_user USING (user_nid) WHERE user_id = '@veteran:localhost'`,
    )
    expect(row?.password_hash).toContain('$ln=4,')
    expect((await login(asUser('veteran'))).status).toBe(200)
  })
})

describe('logout', () => {
  it('ends the session at once and removes its device', async () => {
    const { body } = await login(asUser('alice'))
    await whoami(body.access_token)
    expect(await api.call('POST', '/logout', { token: body.access_token, body: {} })).toEqual({})
    expect((await whoami(body.access_token)).status).toBe(401)
    const { devices } = await api.call('GET', '/devices', { token: alice.token })
    expect(devices.map((device: Json) => device.device_id)).not.toContain(body.device_id)
  })

  it('needs no body', async () => {
    const { body } = await login(asUser('alice'))
    expect((await api.request('POST', '/logout', { token: body.access_token })).status).toBe(200)
  })

  it('can end all sessions of one user, and of no other', async () => {
    const bob = await register(api, 'bob')
    const other = await login(asUser('bob'))
    await whoami(other.body.access_token)
    await api.call('POST', '/logout/all', { token: bob.token, body: {} })
    for (const token of [bob.token, other.body.access_token]) expect((await whoami(token)).status).toBe(401)
    expect((await whoami(alice.token)).status).toBe(200)
    expect((await login(asUser('bob'))).status).toBe(200)
  })
})

describe('devices', () => {
  it('show where they were seen last', async () => {
    const carol = await register(api, 'carol')
    await whoami(carol.token)
    await server.services.sessions.flush()
    const device = await api.call('GET', `/devices/${carol.deviceId}`, { token: carol.token })
    expect(device).toEqual({
      device_id: carol.deviceId,
      display_name: null,
      last_seen_ip: '127.0.0.1',
      last_seen_ts: expect.any(Number),
    })
    // Seen again within the minute: nothing is written; after it, it is.
    await whoami(carol.token)
    await server.services.sessions.flush()
    expect(await api.call('GET', `/devices/${carol.deviceId}`, { token: carol.token })).toEqual(device)
    server.advance(61_000)
    await whoami(carol.token)
    await server.services.sessions.flush()
    const later = await api.call('GET', `/devices/${carol.deviceId}`, { token: carol.token })
    expect(later.last_seen_ts).toBeGreaterThanOrEqual(device.last_seen_ts + 60_000)
  })

  it('can be renamed', async () => {
    const { token, deviceId } = alice
    const path = `/devices/${deviceId}`
    await api.call('PUT', path, { token, body: { display_name: 'Desk' } })
    expect((await api.call('GET', path, { token })).display_name).toBe('Desk')
    await api.call('PUT', path, { token, body: {} })
    expect((await api.call('GET', path, { token })).display_name).toBe('Desk')
    const bad = await api.request('PUT', path, { token, body: { display_name: 5 } })
    expect(bad).toMatchObject({ status: 400, body: { errcode: 'M_BAD_JSON' } })
    for (const body of [{}, { display_name: 'x' }]) {
      const answer = await api.request('PUT', '/devices/NONE', { token, body })
      expect(answer).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
    }
    expect((await api.request('GET', '/devices/NONE', { token })).status).toBe(404)
  })

  it('of other users are out of reach', async () => {
    const dora = await register(api, 'dora')
    expect((await api.request('GET', `/devices/${alice.deviceId}`, { token: dora.token })).status).toBe(404)
  })
})

describe('deleting a device', () => {
  const password = (session: string, changes: Json = {}) => ({
    auth: {
      type: 'm.login.password',
      identifier: { type: 'm.id.user', user: 'alice' },
      password: PASSWORD,
      session,
      ...changes,
    },
  })
  const challenge = async (path: string) => (await api.request('DELETE', path, { token: alice.token })).body.session
  const newDevice = async () => (await login(asUser('alice'))).body

  it('wants the password again, and then ends the session', async () => {
    const { device_id, access_token } = await newDevice()
    const first = await api.request('DELETE', `/devices/${device_id}`, { token: alice.token })
    expect(first).toMatchObject({ status: 401, body: { flows: [{ stages: ['m.login.password'] }] } })
    expect(first.body.errcode).toBeUndefined()
    const body = password(first.body.session)
    expect((await api.request('DELETE', `/devices/${device_id}`, { token: alice.token, body })).status).toBe(200)
    expect((await whoami(access_token)).status).toBe(401)
    // The session is spent.
    const again = await api.request('DELETE', `/devices/${device_id}`, { token: alice.token, body })
    expect(again).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN' } })
  })

  it('can be retried after a wrong password in the same session', async () => {
    const { device_id } = await newDevice()
    const path = `/devices/${device_id}`
    const session = await challenge(path)
    const wrong = await api.request('DELETE', path, { token: alice.token, body: password(session, { password: 'no' }) })
    expect(wrong).toMatchObject({ status: 401, body: { errcode: 'M_FORBIDDEN', session } })
    expect((await api.request('DELETE', path, { token: alice.token, body: password(session) })).status).toBe(200)
  })

  it("takes no other user's password, no dummy, and no session of another operation or user", async () => {
    const eve = await register(api, 'eve')
    const { device_id } = await newDevice()
    const path = `/devices/${device_id}`
    const session = await challenge(path)
    const other = await newDevice()
    const attempts: [path: string, token: string, body: Json, status: number][] = [
      [path, alice.token, password(session, { identifier: { type: 'm.id.user', user: 'eve' } }), 401],
      [path, alice.token, { auth: { type: 'm.login.dummy', session } }, 401],
      [path, alice.token, { auth: { session } }, 401],
      [`/devices/${other.device_id}`, alice.token, password(session), 403],
      [path, eve.token, password(session), 403],
    ]
    for (const [at, token, body, status] of attempts) {
      expect((await api.request('DELETE', at, { token, body })).status).toBe(status)
    }
    expect((await api.request('GET', path, { token: alice.token })).status).toBe(200)
  })

  it('in bulk proves one list only', async () => {
    const [one, two] = [await newDevice(), await newDevice()]
    const ask = (body: Json) => api.request('POST', '/delete_devices', { token: alice.token, body })
    const { session } = (await ask({ devices: [one.device_id] })).body
    const wrong = await ask({ devices: [one.device_id], ...password(session, { password: 'no' }) })
    expect(wrong.status).toBe(401)
    // The list is fixed from the first proven stage on; a failed one leaves it open.
    expect((await ask({ devices: [one.device_id, 'NOT A DEVICE'], ...password(session) })).status).toBe(200)
    expect((await whoami(one.access_token)).status).toBe(401)
    expect((await whoami(two.access_token)).status).toBe(200)
  })

  it('is done once by one session, however many try at once', async () => {
    const { device_id } = await newDevice()
    const path = `/devices/${device_id}`
    const session = await challenge(path)
    const answers = await mapConcurrently(Array.from({ length: 6 }), 6, () =>
      api.request('DELETE', path, { token: alice.token, body: password(session) }),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401, 401, 401])
  })

  it('ends with the session after a day', async () => {
    const { device_id } = await newDevice()
    const session = await challenge(`/devices/${device_id}`)
    server.advance(24 * 60 * 60 * 1000 + 1)
    const late = await api.request('DELETE', `/devices/${device_id}`, { token: alice.token, body: password(session) })
    expect(late).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN' } })
  })
})
