import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashToken } from '../../src/domain/opaque-tokens.ts'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { type Account, type Api, type Json, mapConcurrently, openApi, PASSWORD, register } from '../support/api.ts'

let server: AccountServer
let api: Api
let alice: Account

beforeAll(async () => {
  server = await startAccountServer()
  api = openApi(server.baseUrl, { connections: 64 })
  alice = await register(api, 'alice')
})

afterAll(async () => {
  await api.close()
  await server.close()
})

const GET_TOKEN = '/_matrix/client/v1/login/get_token'

const passwordOf = (user: string, session: string): Json => ({
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user },
  password: PASSWORD,
  session,
})

/** Asks for a token as a client does: challenge, password, token. */
async function getToken(account = alice, path = GET_TOKEN): Promise<Json> {
  const { token } = account
  const first = await api.request('POST', path, { token, body: {} })
  expect(first).toMatchObject({ status: 401, body: { flows: [{ stages: ['m.login.password'] }] } })
  const auth = passwordOf(account.userId, first.body.session)
  return api.call('POST', path, { token, body: { auth } })
}

const useToken = (token: unknown, more: Json = {}, prefix = '') =>
  api.request('POST', `${prefix}/login`, { body: { type: 'm.login.token', token, ...more } })

describe('login/get_token', () => {
  it.each(['/_matrix/client', '/_proto/client'])('lets another client log in as the same user (%s)', async (root) => {
    const answer = await getToken(alice, `${root}/v1/login/get_token`)
    expect(answer).toEqual({ login_token: expect.any(String), expires_in_ms: 120_000 })
    const more = { device_id: `PHONE${root.slice(2, 4)}`, initial_device_display_name: 'Phone' }
    const { status, body } = await useToken(answer.login_token, more, root === '/_proto/client' ? `${root}/r0` : '')
    expect(status).toBe(200)
    expect(body).toMatchObject({ user_id: alice.userId, home_server: 'localhost', device_id: more.device_id })
    expect((await api.call('GET', '/account/whoami', { token: body.access_token })).user_id).toBe(alice.userId)
    expect((await api.call('GET', '/account/whoami', { token: alice.token })).device_id).toBe(alice.deviceId)
  })

  it('asks for the password each time, and for nothing less', async () => {
    await getToken()
    const again = await api.request('POST', GET_TOKEN, {
      token: alice.token,
      body: { auth: { type: 'm.login.dummy' } },
    })
    expect(again).toMatchObject({ status: 401, body: { errcode: 'M_UNRECOGNIZED' } })
    const eve = await register(api, 'eve')
    const { session } = (await api.request('POST', GET_TOKEN, { token: eve.token, body: {} })).body
    const stolen = await api.request('POST', GET_TOKEN, {
      token: eve.token,
      body: { auth: passwordOf('alice', session) },
    })
    expect(stolen).toMatchObject({ status: 401, body: { errcode: 'M_FORBIDDEN' } })
  })

  it('is for users only', async () => {
    expect(await api.request('POST', GET_TOKEN, { body: {} })).toMatchObject({
      status: 401,
      body: { errcode: 'M_MISSING_TOKEN' },
    })
    const guest = await api.call('POST', '/register?kind=guest', { body: {} })
    expect(await api.request('POST', GET_TOKEN, { token: guest.access_token, body: {} })).toMatchObject({
      status: 403,
      body: { errcode: 'M_GUEST_ACCESS_FORBIDDEN' },
    })
  })

  it('is told of by the capability and by the login flows, and is gone when it is switched off', async () => {
    const shown = async (from: Api, token: string): Promise<Json[]> => [
      (await from.call('GET', '/capabilities', { token })).capabilities['m.get_login_token'],
      (await from.call('GET', '/login')).flows.find(({ type }: Json) => type === 'm.login.token'),
    ]
    expect(await shown(api, alice.token)).toEqual([{ enabled: true }, { type: 'm.login.token', get_login_token: true }])
    const other = await startAccountServer({ login_tokens: { from_session: false } })
    const otherApi = openApi(other.baseUrl)
    const { token } = await register(otherApi, 'alice')
    expect(await shown(otherApi, token)).toEqual([{ enabled: false }, undefined])
    const answer = await otherApi.request('POST', GET_TOKEN, { token, body: {} })
    expect(answer).toMatchObject({ status: 404, body: { errcode: 'M_UNRECOGNIZED' } })
    await otherApi.close()
    await other.close()
  })
})

describe('a login token', () => {
  it('is good for one of 1,000 parallel uses', async () => {
    const { login_token: token } = await getToken()
    const answers = await mapConcurrently(Array.from({ length: 1_000 }), 64, () => useToken(token))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const { status, body } of answers.filter((answer) => answer.status !== 200)) {
      expect([status, body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    }
  })

  it('is over after two minutes', async () => {
    const [early, late] = [await getToken(), await getToken()]
    server.advance(119_000)
    expect((await useToken(early.login_token)).status).toBe(200)
    server.advance(1_001)
    expect(await useToken(late.login_token)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
  })

  it('is kept as a hash only', async () => {
    const { login_token: token } = await getToken()
    const rows = await server.db.query<{ row: string; token_hash: Buffer }>(
      'SELECT t::text AS row, token_hash FROM login_token t',
    )
    expect(rows.some(({ token_hash }) => token_hash.equals(hashToken(token)))).toBe(true)
    expect(rows.map(({ row }) => row).join()).not.toContain(token)
    expect(server.logged()).not.toContain(token)
  })

  it('is spent neither by a wrong device nor on a deactivated account', async () => {
    const { login_token: token } = await getToken()
    expect(await useToken(token, { device_id: 'x'.repeat(300) })).toMatchObject({ status: 400 })
    expect((await useToken(token)).status).toBe(200)
    const gone = await register(api, 'gone')
    const { login_token: late } = await getToken(gone)
    const deactivate =
      'UPDATE account SET deactivated_at = 1 WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)'
    await server.db.tx((tx) => tx.query(deactivate, [gone.userId]))
    expect(await useToken(late)).toMatchObject({ status: 403, body: { errcode: 'M_USER_DEACTIVATED' } })
  })

  it('is over when its user logs out everywhere', async () => {
    const harry = await register(api, 'harry')
    const { login_token: token } = await getToken(harry)
    await api.call('POST', '/logout/all', { token: harry.token, body: {} })
    expect(await useToken(token)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
  })

  it('gives a refresh token to a client that can use one', async () => {
    const { login_token: token } = await getToken()
    const { body } = await useToken(token, { refresh_token: true })
    expect(body).toMatchObject({ refresh_token: expect.any(String), expires_in_ms: expect.any(Number) })
  })

  const refused: [name: string, token: unknown, status: number, errcode: string][] = [
    ['none', undefined, 400, 'M_MISSING_PARAM'],
    ['a number', 5, 400, 'M_BAD_JSON'],
    ['nothing', '', 403, 'M_FORBIDDEN'],
    ['an invented one', `hearth_login_${'A'.repeat(43)}_00000000`, 403, 'M_FORBIDDEN'],
    ['a NUL', '\0', 403, 'M_FORBIDDEN'],
  ]
  it.each(refused)('cannot be %s', async (_name, token, status, errcode) => {
    expect(await useToken(token)).toMatchObject({ status, body: { errcode } })
  })

  it('cannot be an access token, nor an access token be one', async () => {
    expect((await useToken(alice.token)).status).toBe(403)
    const { login_token: token } = await getToken()
    expect((await api.request('GET', '/account/whoami', { token })).status).toBe(401)
  })
})
