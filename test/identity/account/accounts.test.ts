import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ProtocolError } from '../../../src/core/errors.ts'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type Account, type Api, type Json, openApi, register } from '../../support/api.ts'
import { type IdentityApi, openIdentity, P1, P2 } from '../identity-api.ts'

const HOUR = 3_600_000

/** What other homeservers give as the subject of every token. */
const SUBJECTS: Readonly<Record<string, string | undefined>> = {
  'elsewhere.test': '@bob:elsewhere.test',
  'Mixed.test': '@case:mixed.TEST',
  'liar.test': '@alice:localhost',
  'suffix.test': '@a:x:suffix.test',
  'nobody.test': undefined,
  'garbage.test': 'bob',
}
const asked: [string, string][] = []

let server: AccountServer
let api: Api
let identity: IdentityApi
let alice: Account

beforeAll(async () => {
  server = await startAccountServer(
    {},
    {
      openIdVerifier: {
        async subjectOf(name, token) {
          asked.push([name, token])
          if (name === 'away.test') throw new ProtocolError('M_UNKNOWN', 'It does not answer.', { status: 502 })
          return SUBJECTS[name]
        },
      },
    },
  )
  api = openApi(server.baseUrl)
  identity = openIdentity(server.baseUrl)
  alice = await register(api, 'alice')
})

afterAll(async () => {
  await api.close()
  await server.close()
})

const openIdOf = ({ userId, token }: Account, root = '_proto'): Promise<Json> =>
  api.call('POST', `/${root}/client/v3/user/${encodeURIComponent(userId)}/openid/request_token`, { token, body: {} })

const credentials = (server_name: string, token = 'x') => ({
  access_token: token,
  token_type: 'Bearer',
  proto_server_name: server_name,
  expires_in: 3600,
})

async function tokenOf(account: Account): Promise<string> {
  return (await identity.ask('POST', '/account/register', { body: await openIdOf(account) })).body.token
}

describe('the homeserver vouches for its users', () => {
  it('POST openid/request_token gives the four values, the server name under the name of the dialect', async () => {
    const proto = await openIdOf(alice)
    expect(proto).toEqual({ ...credentials('localhost', expect.any(String) as never) })
    expect(await openIdOf(alice, '_matrix')).toMatchObject({ token_type: 'Bearer', matrix_server_name: 'localhost' })
  })

  it('GET openid/userinfo tells for an hour whom the token stands for, and keeps no token', async () => {
    const { access_token: token } = await openIdOf(alice)
    const userinfo = (text: string) => api.request('GET', `/_matrix/federation/v1/openid/userinfo?access_token=${text}`)
    expect(await userinfo(token)).toEqual({ status: 200, body: { sub: alice.userId } })
    expect(await userinfo(`${token}x`)).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } })
    expect(await userinfo(alice.token)).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } })
    expect(await userinfo('')).toMatchObject({ status: 401, body: { errcode: 'M_MISSING_TOKEN' } })
    const rows = await server.db.query('SELECT token_hash FROM openid_token')
    expect(JSON.stringify(rows)).not.toContain(token)
    server.advance(HOUR)
    expect(await userinfo(token)).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } })
  })

  it("gives nobody a token of another user's", async () => {
    const mallory = await register(api, 'mallory')
    await expect(openIdOf({ ...mallory, userId: alice.userId })).rejects.toMatchObject({ errcode: 'M_FORBIDDEN' })
  })
})

describe('seed 1, POST P2/account/register', () => {
  it('200 {token} for what the own homeserver issued, without asking anybody', async () => {
    const before = asked.length
    const { status, body, headers } = await identity.ask('POST', '/account/register', { body: await openIdOf(alice) })
    expect(status).toBe(200)
    expect(body.token).toMatch(/^[0-9A-Za-z._=-]+$/)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(asked.length).toBe(before)
    expect((await identity.ask('GET', '/account', { token: body.token })).body).toEqual({ user_id: alice.userId })
  })

  it('each of the four is required: 400 M_MISSING_PARAMS', async () => {
    const whole: Record<string, unknown> = credentials('elsewhere.test')
    for (const name of Object.keys(whole)) {
      const { [name]: _, ...body } = whole
      const answer = await identity.ask('POST', '/account/register', { body })
      expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_MISSING_PARAMS' } })
      expect(answer.body.error).toContain(`'${name}'`)
    }
  })

  it('under /_matrix the name and the token suffice, by either name', async () => {
    for (const name of ['matrix_server_name', 'proto_server_name']) {
      const body = { access_token: 'x', [name]: 'elsewhere.test' }
      expect(await identity.ask('POST', '/_matrix/identity/v2/account/register', { body })).toMatchObject({
        status: 200,
      })
    }
    expect(
      await identity.ask('POST', '/_matrix/identity/v2/account/register', { body: { access_token: 'x' } }),
    ).toMatchObject({ status: 400, body: { errcode: 'M_MISSING_PARAMS' } })
  })

  it.each([
    ['', 400, 'M_NOT_JSON'],
    ['{', 400, 'M_NOT_JSON'],
    ['[]', 400, 'M_BAD_JSON'],
    ['{"access_token":1}', 400, 'M_INVALID_PARAM'],
    [JSON.stringify({ ...credentials('elsewhere.test'), expires_in: 'soon' }), 400, 'M_INVALID_PARAM'],
    [JSON.stringify({ ...credentials('elsewhere.test'), token_type: 'Basic' }), 400, 'M_INVALID_PARAM'],
    [JSON.stringify(credentials('elsewhere.test', 'x'.repeat(5000))), 400, 'M_INVALID_PARAM'],
    [JSON.stringify(credentials('elsewhere.test', '\0')), 400, 'M_INVALID_PARAM'],
  ])('facts 34: %s gives %i %s', async (body, status, errcode) => {
    expect(await identity.ask('POST', '/account/register', { body })).toMatchObject({ status, body: { errcode } })
  })

  it.each(['', 'a/b', 'a?x', 'a#', 'a@b', '[::1', 'host:0', 'host:70000', 'host\r\nX: y', 'host:', 'ho st'])(
    'facts S2: the server name %j is refused before anybody is asked',
    async (name) => {
      const before = asked.length
      const answer = await identity.ask('POST', '/account/register', { body: credentials(name) })
      expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
      expect(asked.length).toBe(before)
    },
  )

  it.each([
    ['nobody.test', 401, 'M_UNAUTHORIZED'],
    ['liar.test', 401, 'M_UNAUTHORIZED'],
    ['suffix.test', 401, 'M_UNAUTHORIZED'],
    ['garbage.test', 401, 'M_UNAUTHORIZED'],
    ['localhost', 401, 'M_UNAUTHORIZED'],
    ['away.test', 502, 'M_UNKNOWN'],
    ['elsewhere.test', 200, undefined],
    ['Mixed.test', 200, undefined],
  ])('facts 19 and S16: only users of the server that was asked: %s gives %i %s', async (name, status, errcode) => {
    const answer = await identity.ask('POST', '/account/register', { body: credentials(name) })
    expect([answer.status, answer.body.errcode]).toEqual([status, errcode])
  })

  it('without the homeserver in the same process its users are vouched for over the network', async () => {
    const seen: string[] = []
    const alone = await startAccountServer(
      { roles: ['identity'] },
      {
        openIdVerifier: {
          async subjectOf(name) {
            seen.push(name)
            return '@carol:localhost'
          },
        },
      },
    )
    const { ask } = openIdentity(alone.baseUrl)
    expect(await ask('POST', '/account/register', { body: credentials('localhost') })).toMatchObject({ status: 200 })
    expect(seen).toEqual(['localhost'])
    await alone.close()
  })
})

describe('seed 1, "Authentication"', () => {
  it('2: the token is taken from the header or the query', async () => {
    const token = await tokenOf(alice)
    expect(await identity.ask('GET', '/account', { token })).toMatchObject({ status: 200 })
    expect(await identity.ask('GET', `/account?access_token=${token}`)).toMatchObject({ status: 200 })
  })

  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['unknown', 'abc'],
    ['of the right form', `hearth_identity_${'A'.repeat(43)}_00000000`],
  ])('4: %s credentials give 401 M_UNAUTHORIZED', async (_name, token) => {
    expect(await identity.ask('GET', '/account', { token })).toMatchObject({
      status: 401,
      body: { errcode: 'M_UNAUTHORIZED' },
    })
  })

  it("4: a homeserver's access token is none of the identity service's, nor the other way round", async () => {
    const token = await tokenOf(alice)
    expect(await identity.ask('GET', '/account', { token: alice.token })).toMatchObject({ status: 401 })
    expect(await api.request('GET', '/account/whoami', { token })).toMatchObject({
      status: 401,
      body: { errcode: 'M_UNKNOWN_TOKEN' },
    })
  })

  it('7 and facts 20: a token that was not used for its lifetime is as one that is unknown', async () => {
    const [idle, used] = [await tokenOf(alice), await tokenOf(alice)]
    const ask = (token: string) => identity.ask('GET', '/account', { token })
    server.advance(700 * HOUR)
    expect(await ask(used)).toMatchObject({ status: 200 })
    server.advance(100 * HOUR)
    expect(await ask(idle)).toMatchObject({ status: 401, body: { errcode: 'M_UNAUTHORIZED' } })
    expect(await ask(used)).toMatchObject({ status: 200 })
  })

  it('facts S14 and S29: of a token nothing but its hash is kept, and nothing is logged', async () => {
    const token = await tokenOf(alice)
    await identity.ask('GET', `/account?access_token=${token}`)
    const rows = await server.db.query('SELECT * FROM identity_token')
    expect(JSON.stringify(rows)).not.toContain(token)
    expect(server.logged()).not.toContain(token)
  })
})

describe('seed 1, POST P2/account/logout', () => {
  it('200 {}; later use gives 401 M_UNAUTHORIZED, and a second logout M_UNKNOWN_TOKEN', async () => {
    const [token, other] = [await tokenOf(alice), await tokenOf(alice)]
    expect(await identity.ask('GET', '/account', { token })).toMatchObject({ status: 200 })
    expect(await identity.ask('POST', '/account/logout', { token })).toMatchObject({ status: 200, body: {} })
    expect(await identity.ask('GET', '/account', { token })).toMatchObject({
      status: 401,
      body: { errcode: 'M_UNAUTHORIZED' },
    })
    expect(await identity.ask('POST', '/account/logout', { token })).toMatchObject({
      status: 401,
      body: { errcode: 'M_UNKNOWN_TOKEN' },
    })
    expect(await identity.ask('GET', '/account', { token: other })).toMatchObject({ status: 200 })
  })

  it('without a token: 401 M_UNAUTHORIZED', async () => {
    expect(await identity.ask('POST', '/account/logout')).toMatchObject({
      status: 401,
      body: { errcode: 'M_UNAUTHORIZED' },
    })
  })

  it('a user has a hundred tokens at most; the oldest gives way, at once', async () => {
    const body = credentials('elsewhere.test')
    const first = (await identity.ask('POST', '/account/register', { body })).body.token
    expect(await identity.ask('GET', '/account', { token: first })).toMatchObject({ status: 200 })
    for (let round = 0; round < 100; round++) await identity.ask('POST', '/account/register', { body })
    expect(await identity.ask('GET', '/account', { token: first })).toMatchObject({ status: 401 })
  })
})

it('seed 1, "Versioning" 1: accounts belong to the second generation alone', async () => {
  for (const path of ['/account', '/account/register', '/account/logout']) {
    expect(await identity.ask('POST', P1 + path)).toMatchObject({ status: 404 })
    expect(await identity.ask('DELETE', P2 + path)).toMatchObject({ status: 405 })
  }
})
