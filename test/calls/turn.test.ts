import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expiring } from '../../src/domain/calls/turn.ts'
import { type Account, type Api, openApi, register } from '../support/api.ts'
import { allocate, type Coturn, hasCoturn, startCoturn } from '../support/coturn.ts'
import { startServer, type TestServer } from '../support/server.ts'

const SECRET = 'north'

it('makes the credentials that OpenSSL makes of the same secret', () => {
  // printf '1700000000:@alice:example.org' | openssl dgst -sha1 -hmac north -binary | base64
  expect(expiring(SECRET, '@alice:example.org', 1_700_000_000)).toEqual({
    username: '1700000000:@alice:example.org',
    password: 'b7c/MWmorxmLryRFjaJYkUW5nOo=',
  })
})

it('gives them to users, and says so where there are none', async () => {
  const turn = { uris: ['turn:turn.example.org'], shared_secret: SECRET }
  const server = await startServer({ calls: { turn } })
  const api = openApi(server.baseUrl)
  const { token } = await register(api, 'carol')
  const { username, password, ...rest } = await api.call('GET', '/voip/turnServer', { token })
  expect(rest).toEqual({ uris: ['turn:turn.example.org'], ttl: 86_400 })
  expect(expiring(SECRET, '@carol:localhost', Number(username.split(':')[0]))).toEqual({ username, password })
  await server.restart({ calls: { turn: { uris: [] } } })
  expect(await api.request('GET', '/voip/turnServer', { token })).toMatchObject({ status: 403 })
  await api.close()
  await server.close()
})

describe.skipIf(!hasCoturn())('with a coturn', () => {
  let coturn: Coturn
  let server: TestServer
  let api: Api
  let alice: Account
  let guest: string
  let ahead = 0

  beforeAll(async () => {
    coturn = await startCoturn({ secret: SECRET })
    const turn = { uris: [...coturn.uris, 'stun:127.0.0.1:1'], shared_secret: SECRET, lifetime_seconds: 600 }
    server = await startServer({ calls: { turn } }, { clock: { now: () => Date.now() + ahead } })
    api = openApi(server.baseUrl)
    alice = await register(api, 'alice')
    guest = (await api.call('POST', '/register?kind=guest', { body: {} })).access_token
  })
  afterAll(async () => {
    await api?.close()
    await server?.close()
    await coturn?.close()
  })

  const credentials = (token: string) => api.request('GET', '/voip/turnServer', { token })

  it('gives credentials that it grants an allocation for', async () => {
    const { body } = await credentials(alice.token)
    expect(body).toMatchObject({ uris: [...coturn.uris, 'stun:127.0.0.1:1'], ttl: 600 })
    expect(body.username).toMatch(/^\d+:@alice:localhost$/)
    expect(await allocate(coturn.port, body)).toBe(0)
    expect(await allocate(coturn.port, { ...body, password: 'wrong' })).toBe(401)
  })

  it('gives others to each user, and to guests', async () => {
    const { body } = await credentials(guest)
    expect(body.username).not.toContain('@alice')
    expect(await allocate(coturn.port, body)).toBe(0)
  })

  it('gives credentials that expire', async () => {
    ahead = -700_000
    const { body } = await credentials(alice.token)
    ahead = 0
    expect(Number(body.username.split(':')[0])).toBeLessThan(Date.now() / 1000)
    expect(await allocate(coturn.port, body)).toBe(401)
  })

  it('keeps guests out where operators say so', async () => {
    await server.restart({ calls: { turn: { allow_guests: false } } })
    expect(await credentials(guest)).toMatchObject({ status: 403, body: { errcode: 'M_GUEST_ACCESS_FORBIDDEN' } })
    expect((await credentials(alice.token)).status).toBe(200)
  })
})

describe.skipIf(!hasCoturn())('with a coturn that knows users', () => {
  it('gives the fixed user', async () => {
    const coturn = await startCoturn({ user: 'hearth', password: 'south' })
    const turn = { uris: [...coturn.uris], user: 'hearth', password: 'south' }
    const server = await startServer({ calls: { turn } })
    const api = openApi(server.baseUrl)
    const { token } = await register(api, 'bob')
    const body = await api.call('GET', '/voip/turnServer', { token })
    expect(body).toMatchObject({ username: 'hearth', password: 'south', ttl: 86_400 })
    expect(await allocate(coturn.port, body)).toBe(0)
    await api.close()
    await server.close()
    await coturn.close()
  })
})
