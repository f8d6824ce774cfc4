import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PASSWORD } from '../support/api.ts'
import { type OauthWorld, openOauthWorld, refresh, session, whoami } from './world.ts'

let world: OauthWorld
let client: string

beforeAll(async () => {
  world = await openOauthWorld()
  client = await world.client()
  await world.account('alice')
})
afterAll(() => world.close())

const revoke = (fields: Record<string, string>) => world.form(world.metadata.revocation_endpoint, fields)

describe('a refresh', () => {
  it('gives new tokens, and the earlier ones end', async () => {
    const first = await session(world, client, 'alice', 'REFRESHED1')
    const answer = await refresh(world, first.refresh_token, client)
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ ...first, access_token: expect.any(String), refresh_token: expect.any(String) })
    expect(answer.body.refresh_token).not.toBe(first.refresh_token)
    expect((await whoami(world, answer.body.access_token)).status).toBe(200)
    expect((await whoami(world, first.access_token)).body.errcode).toBe('M_UNKNOWN_TOKEN')
  })

  it('can be repeated as long as its answer was not used', async () => {
    const first = await session(world, client, 'alice', 'LOSTREPLY1')
    await refresh(world, first.refresh_token, client)
    const again = await refresh(world, first.refresh_token, client)
    expect(again.status).toBe(200)
    expect((await whoami(world, again.body.access_token)).status).toBe(200)
  })

  it('with a used token ends the session and its device', async () => {
    const first = await session(world, client, 'alice', 'STOLENONE1')
    const second = await refresh(world, first.refresh_token, client)
    await whoami(world, second.body.access_token)
    const reused = await refresh(world, first.refresh_token, client)
    expect([reused.status, reused.body.error]).toEqual([400, 'invalid_grant'])
    expect((await whoami(world, second.body.access_token)).status).toBe(401)
    expect((await refresh(world, second.body.refresh_token, client)).body.error).toBe('invalid_grant')
    const other = await session(world, client, 'alice', 'STILLHERE1')
    const { devices } = await world.api.call('GET', '/devices', { token: other.access_token })
    expect(devices.map(({ device_id }: { device_id: string }) => device_id)).not.toContain('STOLENONE1')
  })

  it('is for the client that the session belongs to', async () => {
    const other = await world.client({ client_name: 'Another app' })
    const first = await session(world, client, 'alice', 'NOTSHARED1')
    expect((await refresh(world, first.refresh_token, other)).body.error).toBe('invalid_grant')
    expect((await refresh(world, first.refresh_token, client)).status).toBe(200)
  })

  it('does not widen the scope', async () => {
    const first = await session(world, client, 'alice', 'NARROWONE1')
    const wide = { grant_type: 'refresh_token', refresh_token: first.refresh_token, client_id: client }
    const answer = await world.form(world.metadata.token_endpoint, { ...wide, scope: 'urn:synapse:admin:*' })
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_scope'])
    const same = await world.form(world.metadata.token_endpoint, { ...wide, scope: first.scope })
    expect(same.status).toBe(200)
  })

  it.each([
    ['no token', { refresh_token: '' }, 'invalid_request'],
    ['no client', { client_id: '' }, 'invalid_request'],
    ['a made-up token', { refresh_token: 'hearth_refresh_x' }, 'invalid_grant'],
  ])('with %s is refused', async (_what, changes, error) => {
    const form = { grant_type: 'refresh_token', refresh_token: 'x', client_id: client, ...changes }
    const answer = await world.form(world.metadata.token_endpoint, form)
    expect([answer.status, answer.body.error]).toEqual([400, error])
  })

  it('takes no parameter twice', async () => {
    const answer = await world.form(world.metadata.token_endpoint, [
      ['grant_type', 'refresh_token'],
      ['refresh_token', 'a'],
      ['refresh_token', 'b'],
      ['client_id', client],
    ])
    expect(answer.body.error).toBe('invalid_request')
  })

  it('of a locked account waits: the app keeps its keys', async () => {
    await world.account('locked')
    const first = await session(world, client, 'locked')
    await world.db.tx((tx) =>
      tx.query(
        `UPDATE account SET is_locked = true FROM matrix_user u WHERE u.user_nid = account.user_nid AND u.user_id = '@locked:localhost'`,
        [],
      ),
    )
    expect((await refresh(world, first.refresh_token, client)).status).toBe(503)
  })

  it('by the interface that the session did not come from is refused, both ways', async () => {
    const first = await session(world, client, 'alice', 'OTHERDOOR1')
    const legacy = await world.api.request('POST', '/refresh', { body: { refresh_token: first.refresh_token } })
    expect([legacy.status, legacy.body.errcode]).toEqual([401, 'M_UNKNOWN_TOKEN'])
    const identifier = { type: 'm.id.user', user: 'alice' }
    const body = { type: 'm.login.password', identifier, password: PASSWORD, refresh_token: true }
    const login = await world.api.call('POST', '/login', { body })
    expect((await refresh(world, login.refresh_token, client)).body.error).toBe('invalid_grant')
    expect((await world.api.request('POST', '/refresh', { body: { refresh_token: login.refresh_token } })).status).toBe(
      200,
    )
  })

  it('is not possible after the device logged in by the older interface', async () => {
    const first = await session(world, client, 'alice', 'BOTHDOORS1')
    const identifier = { type: 'm.id.user', user: 'alice' }
    const body = { type: 'm.login.password', identifier, password: PASSWORD, device_id: 'BOTHDOORS1' }
    await world.api.call('POST', '/login', { body })
    expect((await refresh(world, first.refresh_token, client)).body.error).toBe('invalid_grant')
  })
})

describe('an expired access token', () => {
  it('is a soft logout', async () => {
    const first = await session(world, client, 'alice', 'EXPIRING01')
    world.advance(301_000)
    const { status, body } = await whoami(world, first.access_token)
    expect(status).toBe(401)
    expect(body).toMatchObject({ errcode: 'M_UNKNOWN_TOKEN', soft_logout: true })
    expect((await refresh(world, first.refresh_token, client)).status).toBe(200)
  })
})

describe('a revocation', () => {
  it.each(['access_token', 'refresh_token'])('of the %s ends all of the session', async (which) => {
    const first = await session(world, client, 'alice', 'REVOKED001')
    const answer = await revoke({ token: first[which], client_id: client })
    expect([answer.status, answer.body]).toEqual([200, {}])
    expect((await whoami(world, first.access_token)).status).toBe(401)
    expect((await refresh(world, first.refresh_token, client)).body.error).toBe('invalid_grant')
  })

  it('works with a wrong hint, a wrong client and without one', async () => {
    for (const fields of [{ token_type_hint: 'refresh_token' }, { client_id: 'wrong' }, {}]) {
      const first = await session(world, client, 'alice', 'LEAKED0001')
      expect((await revoke({ token: first.access_token, ...fields } as Record<string, string>)).status).toBe(200)
      expect((await whoami(world, first.access_token)).status).toBe(401)
    }
  })

  it('of an unknown token succeeds, and without a token is an error', async () => {
    expect((await revoke({ token: 'unknown', client_id: client })).status).toBe(200)
    expect((await revoke({ client_id: client })).body.error).toBe('invalid_request')
  })
})

describe('what ends a session', () => {
  it('logging out ends its refreshing too', async () => {
    const first = await session(world, client, 'alice', 'LOGGEDOUT1')
    await world.api.call('POST', '/logout', { token: first.access_token })
    expect((await refresh(world, first.refresh_token, client)).body.error).toBe('invalid_grant')
  })

  it('logging out everywhere, from a session of the other kind', async () => {
    const account = await world.account('mixed')
    const first = await session(world, client, 'mixed')
    const { devices } = await world.api.call('GET', '/devices', { token: account.token })
    expect(devices).toHaveLength(2)
    await world.api.call('POST', '/logout/all', { token: account.token })
    expect((await whoami(world, first.access_token)).status).toBe(401)
    expect((await refresh(world, first.refresh_token, client)).body.error).toBe('invalid_grant')
  })
})

describe('the token endpoint', () => {
  it.each([
    ['an unknown grant', { grant_type: 'password' }, 'unsupported_grant_type'],
    ['no grant', {}, 'invalid_request'],
  ])('%s', async (_what, fields, error) => {
    const answer = await world.form(world.metadata.token_endpoint, { client_id: client, ...fields })
    expect([answer.status, answer.body.error]).toEqual([400, error])
  })

  it('takes forms only', async () => {
    const body = JSON.stringify({ grant_type: 'refresh_token', refresh_token: 'x', client_id: client })
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(world.metadata.token_endpoint, { method: 'POST', body, headers })
    expect(answer.status).toBe(400)
  })

  it('is open to apps in browsers', async () => {
    const { token_endpoint, revocation_endpoint, registration_endpoint, device_authorization_endpoint } = world.metadata
    for (const url of [token_endpoint, revocation_endpoint, registration_endpoint, device_authorization_endpoint]) {
      const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' }
      const answer = await fetch(url, { method: 'OPTIONS', headers })
      expect(answer.status).toBe(204)
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    }
  })
})
