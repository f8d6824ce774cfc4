import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PASSWORD } from '../support/api.ts'
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
  refresh,
  requestOf,
  scopeOf,
  session,
  whoami,
} from './world.ts'

/** What the standards of OAuth demand, beside what the other files here show. `test/conformance/oauth.ts` lists all of it. */

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

let world: OauthWorld
let client: string

beforeAll(async () => {
  world = await openOauthWorld()
  client = await world.client()
  await world.account('alice')
})
afterAll(() => world.close())

const form = (body: Record<string, string>) => ({ method: 'POST', body: new URLSearchParams(body) })

describe('a request for an authorisation', () => {
  it('gives the state back as it came, and says whose answer it is', async () => {
    const state = 'a b&c=d%20ü+"<>#/?'
    const answer = answerIn(await allow(world, requestOf(client, { state }), 'alice'))
    expect(answer.get('state')).toBe(state)
    expect(answer.get('iss')).toBe(world.metadata.issuer)
  })

  it('may have parameters that nobody knows; empty ones count for nothing', async () => {
    const request = requestOf(client, { state: '', made_up: 'x', scope: scopeOf('UNKNOWNPAR') })
    const answer = answerIn(await allow(world, request, 'alice'))
    expect(answer.get('code')).toMatch(/./)
    expect(answer.has('state')).toBe(false)
    expect(answer.has('made_up')).toBe(false)
  })

  it.each(['request', 'request_uri'])('is not hidden in another by %s', async (name) => {
    const hidden = { [name]: 'https://evil.example/request.jwt' }
    const page = await world.browser().open(addressOf(world, requestOf(client, hidden)))
    expect(page.left?.host ?? 'app.example.com').toBe('app.example.com')
    expect(page.left === undefined ? page.status : answerIn(page).get('error')).toSatisfy(
      (found) => found === 400 || found === `${name}_not_supported`,
    )
  })

  it('with an answer in the fragment has nothing of it in the query', async () => {
    const { left } = await allow(world, requestOf(client, { response_mode: 'fragment' }), 'alice')
    expect(left?.search).toBe('')
    expect(left?.hash).toContain('code=')
  })

  it('leads on by redirects that no browser repeats a form for', async () => {
    const begun = await fetch(addressOf(world, requestOf(client)), { redirect: 'manual' })
    expect(begun.status).toBe(303)
    expect(begun.headers.get('referrer-policy')).toBe('no-referrer')
    const denied = await fetch(addressOf(world, requestOf(client, { response_type: 'token' })), { redirect: 'manual' })
    expect([denied.status, denied.headers.get('location')?.startsWith(REDIRECT)]).toEqual([303, true])
  })

  it('signs nobody in by what stands in its address', async () => {
    const browser = world.browser()
    const page = await browser.open(addressOf(world, requestOf(client)))
    const address = new URL(page.url)
    address.searchParams.set('username', 'alice')
    address.searchParams.set('password', PASSWORD)
    expect((await browser.open(address)).heading).toBe('Sign in')
  })
})

describe('a server with an address of https', () => {
  let secure: OauthWorld
  beforeAll(async () => {
    secure = await openOauthWorld({ public_base_url: 'https://hs.example' })
  })
  afterAll(() => secure.close())

  it('has an issuer without query and fragment, and all endpoints there', () => {
    const { issuer, ...others } = secure.metadata
    expect(issuer).toMatch(/^https:\/\/[^?#]+$/)
    const endpoints = Object.entries(others).filter(([name]) => name.endsWith('_endpoint'))
    expect(endpoints.length).toBeGreaterThanOrEqual(5)
    for (const [, address] of endpoints) expect(new URL(address as string).origin).toBe(new URL(issuer).origin)
  })

  it('sets cookies that go over TLS only, and to no script and no other site', async () => {
    const asked = new URL(addressOf(secure, requestOf(await secure.client())))
    const { headers } = await fetch(`${secure.baseUrl}${asked.pathname}${asked.search}`, { redirect: 'manual' })
    const signIn = await fetch(`${secure.baseUrl}/_hearth/account/sign-in`)
    const cookies = [...headers.getSetCookie(), ...signIn.headers.getSetCookie()]
    expect(cookies.length).toBeGreaterThanOrEqual(2)
    for (const cookie of cookies) {
      expect(cookie).toMatch(/; *secure/i)
      expect(cookie).toMatch(/; *httponly/i)
      expect(cookie).toMatch(/; *samesite=(?:lax|strict)/i)
    }
  })
})

describe('the token endpoint', () => {
  it('answers with what no cache may keep', async () => {
    const request = requestOf(client, { scope: scopeOf('NOTCACHED1') })
    const good = await exchange(world, request, await codeFor(world, request, 'alice'))
    expect(good.body).toMatchObject({ token_type: 'Bearer', expires_in: 300, scope: scopeOf('NOTCACHED1') })
    const bad = await exchange(world, request, 'made-up')
    for (const { headers } of [good, bad]) {
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('content-type')).toMatch(/^application\/json/)
    }
  })

  it('takes nothing from the address, and no other method', async () => {
    const { token_endpoint: endpoint } = world.metadata
    const request = requestOf(client, { scope: scopeOf('INADDRESS1') })
    const code = await codeFor(world, request, 'alice')
    const fields = {
      grant_type: 'authorization_code',
      code,
      redirect_uri: REDIRECT,
      client_id: client,
      code_verifier: request.verifier,
    }
    const inAddress = `${endpoint}?${new URLSearchParams(fields)}`
    expect((await fetch(inAddress, form({}))).status).toBe(400)
    expect((await fetch(inAddress)).status).toBe(405)
    expect((await exchange(world, request, code)).status).toBe(200)
  })

  it.each(['password', 'client_credentials', 'urn:ietf:params:oauth:grant-type:jwt-bearer'])(
    'knows no grant of type %s',
    async (grant_type) => {
      const fields = { grant_type, client_id: client, username: 'alice', password: PASSWORD, scope: scopeOf('X') }
      const { status, body } = await world.form(world.metadata.token_endpoint, fields)
      expect([status, body.error]).toEqual([400, 'unsupported_grant_type'])
    },
  )

  it('does not know a client that did not register', async () => {
    const request = requestOf(client)
    const code = await codeFor(world, request, 'alice')
    const { status, body } = await exchange(world, request, code, { client_id: 'AAAAAAAAAAAAAAAAAAAAAAAA' })
    expect([400, 401]).toContain(status)
    expect(body.error).toBe('invalid_client')
  })

  it.each([
    ['short', 'x'.repeat(42)],
    ['long', 'x'.repeat(129)],
    ['of other characters', `${'x'.repeat(50)} !`],
  ])('takes no verifier that is %s, even if it fits', async (_what, verifier) => {
    const code_challenge = createHash('sha256').update(verifier).digest('base64url')
    const request = requestOf(client, { code_challenge, scope: scopeOf('BADVERIFIER') })
    const code = await codeFor(world, request, 'alice')
    const { status, body } = await exchange(world, request, code, { code_verifier: verifier })
    expect(status).toBe(400)
    expect(['invalid_grant', 'invalid_request']).toContain(body.error)
  })

  it('keeps the two kinds of tokens apart', async () => {
    const { access_token, refresh_token } = await session(world, client, 'alice', 'TWOKINDS01')
    expect((await whoami(world, refresh_token)).status).toBe(401)
    expect((await refresh(world, access_token, client)).body.error).toBe('invalid_grant')
    expect((await whoami(world, access_token)).status).toBe(200)
  })
})

describe('a device that waits', () => {
  const begin = async () => {
    const scope = scopeOf('WAITING001')
    const answer = await world.form(world.metadata.device_authorization_endpoint, { client_id: client, scope })
    return answer.body
  }
  const poll = async (device_code: string) => {
    const fields = { grant_type: DEVICE_GRANT, device_code, client_id: client }
    const answer = await world.form(world.metadata.token_endpoint, fields)
    world.advance(5_001)
    return answer
  }

  it('is not signed in by a link alone, and by its code once', async () => {
    const begun = await begin()
    const browser = world.browser()
    const entry = await browser.signIn(await browser.open(begun.verification_uri_complete), 'alice')
    expect((await poll(begun.device_code)).body.error).toBe('authorization_pending')
    const question = await browser.submit(entry, { user_code: begun.user_code })
    expect((await poll(begun.device_code)).body.error).toBe('authorization_pending')
    await browser.submit(question, { decision: 'allow' })
    expect((await poll(begun.device_code)).status).toBe(200)
    expect((await poll(begun.device_code)).body.error).toBe('invalid_grant')
  })

  it('gets codes that differ each time, from letters that nobody confuses', async () => {
    const codes = await Promise.all(Array.from({ length: 20 }, begin))
    expect(new Set(codes.map(({ user_code }) => user_code)).size).toBe(20)
    expect(new Set(codes.map(({ device_code }) => device_code)).size).toBe(20)
    for (const { user_code } of codes)
      expect(user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
  })
})

describe('a registration', () => {
  it('gives no secret that an app could not keep, and is not cached', async () => {
    const answer = await fetch(world.metadata.registration_endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...CLIENT, client_name: 'Without a secret', client_secret: 'chosen' }),
    })
    expect(answer.status).toBe(201)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const body = (await answer.json()) as object
    expect(Object.keys(body)).not.toContain('client_secret')
    expect(Object.keys(body)).not.toContain('registration_access_token')
  })
})

describe('a refresh at the same moment', () => {
  it('by many leaves one line of tokens, and a session that goes on', async () => {
    const first = await session(world, client, 'alice', 'MANYATONCE')
    const answers = await Promise.all(Array.from({ length: 8 }, () => refresh(world, first.refresh_token, client)))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
    const alive = []
    for (const { body } of answers) {
      const { status } = await whoami(world, body.access_token)
      if (status === 200) alive.push(body)
    }
    expect(alive).toHaveLength(1)
    expect((await refresh(world, alive[0]!.refresh_token, client)).status).toBe(200)
  })
})
