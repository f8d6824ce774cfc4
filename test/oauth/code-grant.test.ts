import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_INTERACTIONS } from '../../src/domain/limits/oauth.ts'
import { inPortions } from '../support/portions.ts'
import {
  addressOf,
  allow,
  answerIn,
  CLIENT,
  codeFor,
  exchange,
  type OauthWorld,
  openOauthWorld,
  REDIRECT,
  requestOf,
  scopeOf,
  session,
  whoami,
} from './world.ts'

let world: OauthWorld
let client: string

beforeAll(async () => {
  world = await openOauthWorld()
  client = await world.client()
  await world.account('alice')
})
afterAll(() => world.close())

describe('a sign-in', () => {
  it('gives a session like any other', async () => {
    const request = requestOf(client)
    const browser = world.browser()
    const signIn = await browser.open(addressOf(world, request))
    expect(signIn.heading).toBe('Sign in')
    const consent = await browser.signIn(signIn, 'alice')
    expect(consent.heading).toBe('Allow app.example.com?')
    expect(consent.text).toContain('@alice:localhost')
    const back = await browser.submit(consent, { decision: 'allow' })
    expect(back.status).toBe(303)
    expect(back.left?.href.startsWith(`${REDIRECT}?`)).toBe(true)
    const answer = answerIn(back)
    expect(answer.get('state')).toBe(request.parameters.state)
    expect(answer.get('iss')).toBe(world.metadata.issuer)
    const tokens = await exchange(world, request, answer.get('code') ?? '')
    expect(tokens.status).toBe(200)
    expect(tokens.headers.get('cache-control')).toBe('no-store')
    expect(tokens.body).toEqual({
      access_token: expect.stringMatching(/^hearth_/),
      token_type: 'Bearer',
      expires_in: 300,
      refresh_token: expect.stringMatching(/^hearth_refresh_/),
      scope: scopeOf('DEVICE0001'),
    })
    const { body } = await whoami(world, tokens.body.access_token)
    expect(body).toEqual({ user_id: '@alice:localhost', device_id: 'DEVICE0001', is_guest: false })
    const { devices } = await world.api.call('GET', '/devices', { token: tokens.body.access_token })
    expect(devices).toContainEqual(expect.objectContaining({ device_id: 'DEVICE0001', display_name: 'An app' }))
  })

  it('begins, and ends, also while very many are under way: the oldest give way', async () => {
    const browser = world.browser()
    const request = requestOf(client, { scope: scopeOf('UNDERWAY') })
    const consent = await browser.signIn(await browser.open(addressOf(world, request)), 'alice')
    await inPortions(MAX_INTERACTIONS, (from, to) =>
      world.db.tx((tx) =>
        tx.query(
          `INSERT INTO oauth_state (model, id_hash, payload, expires_at)
           SELECT 'Interaction', sha256(int4send(n)), '{}', $1 FROM generate_series($2::int, $3::int) n`,
          [Date.now() + 600_000, from, to],
        ),
      ),
    )
    world.advance(5_001)
    expect((await world.browser().open(addressOf(world, requestOf(client)))).heading).toBe('Sign in')
    const [row] = await world.db.query<{ count: number }>(
      "SELECT count(*)::int AS count FROM oauth_state WHERE model = 'Interaction'",
      [],
    )
    expect(row!.count).toBeLessThan(MAX_INTERACTIONS)
    const code = answerIn(await browser.submit(consent, { decision: 'allow' })).get('code') ?? ''
    expect((await exchange(world, request, code)).status).toBe(200)
  })

  it('answers in the fragment if the client wants that', async () => {
    const page = await allow(world, requestOf(client, { response_mode: 'fragment' }), 'alice')
    expect(page.left?.search).toBe('')
    expect(new URLSearchParams(page.left?.hash.slice(1)).get('code')).toBeTruthy()
  })

  it('takes the older spelling of the scopes, and says it in the answer', async () => {
    const scope = 'urn:matrix:org.matrix.msc2967.client:api:* urn:matrix:org.matrix.msc2967.client:device:OLDSPELLING'
    const request = requestOf(client, { scope: `openid ${scope}`, nonce: 'n', max_age: '1' })
    const tokens = await exchange(world, request, await codeFor(world, request, 'alice'))
    expect(tokens.body.scope).toBe(scope)
    expect(tokens.body).not.toHaveProperty('id_token')
    expect((await whoami(world, tokens.body.access_token)).body.device_id).toBe('OLDSPELLING')
  })

  it('asks again each time, although the browser is signed in', async () => {
    const browser = world.browser()
    await allow(world, requestOf(client), 'alice', browser)
    const page = await browser.open(addressOf(world, requestOf(client)))
    expect(page.heading).toBe('Allow app.example.com?')
  })

  it('tells the client when the person does not allow it', async () => {
    const browser = world.browser()
    const request = requestOf(client)
    const consent = await browser.signIn(await browser.open(addressOf(world, request)), 'alice')
    const answer = answerIn(await browser.submit(consent, { decision: 'deny' }))
    expect(answer.get('error')).toBe('access_denied')
    expect(answer.get('state')).toBe(request.parameters.state)
    expect(answer.get('iss')).toBe(world.metadata.issuer)
    expect(answer.get('code')).toBeNull()
  })

  it('takes over a device of the same user: its earlier session ends', async () => {
    const first = await session(world, client, 'alice', 'TAKENOVER1')
    const second = await session(world, client, 'alice', 'TAKENOVER1')
    expect((await whoami(world, first.access_token)).status).toBe(401)
    expect((await whoami(world, second.access_token)).status).toBe(200)
  })

  it('says which session it takes the place of, and that it can administer the server', async () => {
    const { userId } = await world.account('admin')
    const browser = world.browser()
    const asked = addressOf(world, requestOf(client, { scope: scopeOf('NAMED00001') }))
    const fresh = await browser.signIn(await browser.open(asked), 'admin')
    expect(fresh.text).toContain('NAMED00001')
    expect(fresh.text).not.toMatch(/which ends|You administer/)
    await session(world, client, 'admin', 'NAMED00001')
    await world.db.tx((tx) =>
      tx.query(
        'UPDATE account SET is_admin = true WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $1)',
        [userId],
      ),
    )
    const again = await browser.open(asked)
    expect(again.text).toContain('your session “An app”, which ends')
    expect(again.text).toContain('You administer localhost')
  })

  it("leaves another user's device of the same name alone", async () => {
    await world.account('bob')
    const alices = await session(world, client, 'alice', 'SAMENAME01')
    await session(world, client, 'bob', 'SAMENAME01')
    expect((await whoami(world, alices.access_token)).body.user_id).toBe('@alice:localhost')
  })
})

describe('requests that no client can be told of', () => {
  it.each([
    ['an unknown client', { client_id: 'AAAAAAAAAAAAAAAAAAAAAAAA' }],
    ['no client', { client_id: undefined }],
    ['another address', { redirect_uri: 'https://app.example.com/other' }],
    ['another host', { redirect_uri: 'https://evil.example/callback' }],
    ['an address with more at its end', { redirect_uri: `${REDIRECT}/../evil` }],
    ['an address with a query that was not registered', { redirect_uri: `${REDIRECT}?x=1` }],
    ['another spelling of the host', { redirect_uri: 'https://APP.example.com/callback' }],
    ['an encoded path', { redirect_uri: 'https://app.example.com/%63allback' }],
    ['no address', { redirect_uri: undefined }],
  ])('%s: a page, and no redirect', async (_what, changes) => {
    const page = await world.browser().open(addressOf(world, requestOf(client, changes)))
    expect(page.left).toBeUndefined()
    expect(page.status).toBe(400)
    expect(page.heading).toBe('This sign-in cannot begin')
  })

  it('a parameter twice', async () => {
    const address = `${addressOf(world, requestOf(client))}&redirect_uri=https%3A%2F%2Fevil.example%2F`
    const page = await world.browser().open(address)
    expect(page.left).toBeUndefined()
    expect(page.status).toBe(400)
  })
})

describe('requests that the client is told of', () => {
  it.each([
    ['no challenge', { code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
    ['a plain challenge', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['a challenge without a method, which means plain', { code_challenge_method: undefined }, 'invalid_request'],
    ['a short challenge', { code_challenge: 'abc' }, 'invalid_request'],
    ['an implicit token', { response_type: 'token' }, 'unsupported_response_type'],
    ['an ID token', { response_type: 'code id_token' }, 'unsupported_response_type'],
    ['an unknown way of answering', { response_mode: 'form_post' }, 'unsupported_response_mode'],
    ['no scope', { scope: undefined }, 'invalid_scope'],
    ['no device', { scope: 'urn:matrix:client:api:*' }, 'invalid_scope'],
    ['two devices', { scope: `${scopeOf('DEVICE0001')} urn:matrix:client:device:DEVICE0002` }, 'invalid_scope'],
    ['a device without the API', { scope: 'urn:matrix:client:device:DEVICE0001' }, 'invalid_scope'],
    [
      'two spellings',
      { scope: 'urn:matrix:client:api:* urn:matrix:org.matrix.msc2967.client:device:DEVICE0001' },
      'invalid_scope',
    ],
    ['a long device', { scope: scopeOf('D'.repeat(256)) }, 'invalid_scope'],
    ['an empty device', { scope: scopeOf('') }, 'invalid_scope'],
    ['no question to the person', { prompt: 'none' }, 'login_required'],
  ])('%s', async (_what, changes, error) => {
    const request = requestOf(client, changes)
    const answer = answerIn(await world.browser().open(addressOf(world, request)))
    expect(answer.get('error')).toBe(error)
    expect(answer.get('state')).toBe(request.parameters.state)
    expect(answer.get('iss')).toBe(world.metadata.issuer)
    expect(answer.get('code')).toBeNull()
  })

  it('administration is not granted by asking for it', async () => {
    const request = requestOf(client, { scope: `${scopeOf('DEVICE0009')} urn:synapse:admin:*` })
    const tokens = await exchange(world, request, await codeFor(world, request, 'alice'))
    expect(tokens.body.scope).toBe(scopeOf('DEVICE0009'))
  })
})

describe('a code', () => {
  it.each([
    ['another verifier', { code_verifier: 'x'.repeat(64) }],
    ['no verifier', { code_verifier: undefined }],
    ['another address', { redirect_uri: 'https://app.example.com/other' }],
    ['a made-up code', { code: 'made-up' }],
  ])('is worth nothing with %s', async (_what, changes) => {
    const request = requestOf(client, { scope: scopeOf('NEVERMADE1') })
    const code = await codeFor(world, request, 'alice')
    const answer = await exchange(world, request, code, changes)
    expect(answer.status).toBe(400)
    expect(answer.body.error).toBe('invalid_grant')
  })

  it('needs the address again', async () => {
    const request = requestOf(client)
    const answer = await exchange(world, request, await codeFor(world, request, 'alice'), { redirect_uri: undefined })
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_request'])
  })

  it('belongs to its client', async () => {
    const other = await world.client({ client_name: 'Another app' })
    const request = requestOf(client, { scope: scopeOf('NOTMIXEDUP') })
    const code = await codeFor(world, request, 'alice')
    const answer = await exchange(world, request, code, { client_id: other })
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_grant'])
    expect((await exchange(world, request, code)).status).toBe(200)
  })

  it('is good once: a second use ends the session of the first', async () => {
    const request = requestOf(client, { scope: scopeOf('USEDTWICE1') })
    const code = await codeFor(world, request, 'alice')
    const first = await exchange(world, request, code)
    expect((await whoami(world, first.body.access_token)).status).toBe(200)
    const second = await exchange(world, request, code)
    expect([second.status, second.body.error]).toEqual([400, 'invalid_grant'])
    expect((await whoami(world, first.body.access_token)).status).toBe(401)
  })

  it('is good once, also for two that ask at the same moment', async () => {
    const request = requestOf(client, { scope: scopeOf('ATTHESAME1') })
    const code = await codeFor(world, request, 'alice')
    const answers = await Promise.all(Array.from({ length: 6 }, () => exchange(world, request, code)))
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1)
    for (const { body } of answers) {
      if (body.access_token) expect((await whoami(world, body.access_token)).status).toBe(401)
    }
  })

  it('makes no session of a client that was removed meanwhile', async () => {
    const removed = await world.client({ client_name: 'Removed' })
    const request = requestOf(removed, { scope: scopeOf('REMOVED001') })
    const code = await codeFor(world, request, 'alice')
    await world.db.query('DELETE FROM oauth_client WHERE client_id = $1', [removed])
    const answer = await exchange(world, request, code)
    expect(answer.status).toBe(400)
    expect(['invalid_grant', 'invalid_client']).toContain(answer.body.error)
  })

  it('is good for a minute', async () => {
    const request = requestOf(client)
    const code = await codeFor(world, request, 'alice')
    await world.db.tx((tx) => tx.query("UPDATE oauth_state SET expires_at = 1 WHERE model = 'AuthorizationCode'", []))
    expect((await exchange(world, request, code)).body.error).toBe('invalid_grant')
  })

  it('makes no session of an account that was deactivated meanwhile', async () => {
    const leaver = await world.account('leaver')
    const request = requestOf(client)
    const code = await codeFor(world, request, 'leaver')
    const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: 'leaver' } }
    const body = { auth: { ...auth, password: 'correct horse battery staple' } }
    await world.api.call('POST', '/account/deactivate', { token: leaver.token, body })
    expect((await exchange(world, request, code)).body.error).toBe('invalid_grant')
  })
})

describe('apps', () => {
  const native = {
    application_type: 'native',
    redirect_uris: ['com.example.app:/callback', 'http://localhost:3001/login', 'http://127.0.0.1/back', REDIRECT],
    client_name: 'A native app',
  }

  it('come back by a page with a link that a person follows', async () => {
    const id = await world.client(native)
    const page = await allow(world, requestOf(id, { redirect_uri: 'com.example.app:/callback' }), 'alice')
    expect(page.status).toBe(200)
    expect(page.heading).toBe('Back to A native app')
    expect(page.text).toMatch(/<a class="button" href="com\.example\.app:\/callback\?code=/)
    const claimed = await allow(world, requestOf(id, { redirect_uri: REDIRECT }), 'alice')
    expect(claimed.heading).toBe('Back to A native app')
  })

  it('listen at any port of this machine', async () => {
    const id = await world.client(native)
    for (const redirect_uri of ['http://localhost:4711/login', 'http://localhost/login', 'http://127.0.0.1:1/back']) {
      const page = await allow(world, requestOf(id, { redirect_uri }), 'alice')
      expect(page.left?.href).toMatch(redirect_uri)
    }
    const other = await world.browser().open(addressOf(world, requestOf(id, { redirect_uri: 'http://[::1]:1/back' })))
    expect(other.heading).toBe('This sign-in cannot begin')
  })
})

describe('the name of a client', () => {
  it('proves nothing: the domain is what people see first', async () => {
    const id = await world.client({ client_name: 'Element <b>\u202eofficial', client_uri: CLIENT.client_uri })
    const browser = world.browser()
    const page = await browser.signIn(await browser.open(addressOf(world, requestOf(id))), 'alice')
    expect(page.heading).toBe('Allow app.example.com?')
    expect(page.text).not.toContain('<b>')
    expect(page.text).not.toContain('\u202e')
    expect(page.text).toContain('which calls itself “Element &#60;b&#62; official”')
  })
})
