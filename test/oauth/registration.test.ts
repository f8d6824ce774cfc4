import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_CLIENTS } from '../../src/domain/limits/oauth.ts'
import { startAccountServer } from '../support/account-server.ts'
import { inPortions } from '../support/portions.ts'
import { CLIENT, type OauthWorld, openOauthWorld } from './world.ts'

let world: OauthWorld

beforeAll(async () => {
  world = await openOauthWorld()
})
afterAll(() => world.close())

const registered = (body: unknown) => world.api.request('POST', '/_hearth/oauth/register', { body })

describe('the metadata of the server', () => {
  it('names everything that clients check', () => {
    const { metadata, origin } = world
    expect(metadata.issuer).toBe(`${origin}/`)
    for (const name of ['authorization', 'token', 'revocation', 'registration', 'device_authorization']) {
      expect(metadata[`${name}_endpoint`]).toMatch(`${origin}/_hearth/oauth/`)
    }
    expect(metadata.response_types_supported).toEqual(['code'])
    expect(metadata.response_modes_supported).toEqual(['query', 'fragment'])
    expect(metadata.code_challenge_methods_supported).toEqual(['S256'])
    expect(metadata.grant_types_supported).toContain('urn:ietf:params:oauth:grant-type:device_code')
    expect(metadata.account_management_actions_supported).toContain('org.matrix.device_delete')
    expect(metadata.authorization_response_iss_parameter_supported).toBe(true)
  })

  it('is the same at its older place', async () => {
    const older = await world.api.call('GET', '/_matrix/client/unstable/org.matrix.msc2965/auth_metadata')
    expect(older).toEqual(world.metadata)
  })

  it.each([
    ['switched off', 'oauth.enabled', { public_base_url: 'https://hs.example', oauth: { enabled: false } }],
    ['without a public address', 'public_base_url', {}],
    ['without TLS', 'public_base_url', { public_base_url: 'http://hs.example' }],
  ])('is not there if OAuth is %s, and says which option that is', async (_what, option, values) => {
    const server = await startAccountServer(values)
    for (const path of ['v1/auth_metadata', 'unstable/org.matrix.msc2965/auth_metadata']) {
      const answer = await fetch(`${server.baseUrl}/_matrix/client/${path}`)
      expect(answer.status).toBe(404)
      expect(await answer.json()).toMatchObject({ errcode: 'M_UNRECOGNIZED', error: expect.stringContaining(option) })
    }
    expect((await fetch(`${server.baseUrl}/_hearth/oauth/authorize`)).status).toBe(404)
    await server.close()
  })
})

describe('registering a client', () => {
  it('answers with what is kept, and 201', async () => {
    const { status, body } = await registered({ ...CLIENT, contacts: ['x'], grant_types: ['authorization_code', 'x'] })
    expect(status).toBe(201)
    expect(body).toEqual({
      client_id: expect.stringMatching(/^[\w-]{24}$/),
      client_id_issued_at: expect.any(Number),
      client_name: 'An app',
      client_uri: CLIENT.client_uri,
      redirect_uris: CLIENT.redirect_uris,
      response_types: ['code'],
      grant_types: ['authorization_code', 'refresh_token'],
      application_type: 'web',
      token_endpoint_auth_method: 'none',
    })
  })

  it('gives the same client the same id', async () => {
    const [one, two] = [await registered(CLIENT), await registered({ ...CLIENT, software_version: '2' })]
    expect(two.body.client_id).toBe(one.body.client_id)
  })

  it.each([
    [{ ...CLIENT, redirect_uris: ['https://evil.example/'] }, 'invalid_redirect_uri'],
    [{ ...CLIENT, redirect_uris: [`${CLIENT.redirect_uris[0]}#f`] }, 'invalid_redirect_uri'],
    [{ ...CLIENT, redirect_uris: 'https://app.example.com/' }, 'invalid_redirect_uri'],
    [{ ...CLIENT, client_uri: undefined }, 'invalid_client_metadata'],
    [{ ...CLIENT, token_endpoint_auth_method: 'client_secret_post' }, 'invalid_client_metadata'],
  ])('%j is refused', async (body, error) => {
    const answer = await registered(body)
    expect([answer.status, answer.body.error]).toEqual([400, error])
    expect(answer.body.error_description).toEqual(expect.any(String))
  })

  it('is refused if it is long', async () => {
    const answer = await registered({ ...CLIENT, x: 'x'.repeat(20_000) })
    expect(answer.status).toBe(413)
  })
})

describe('10,000 registrations from one address', () => {
  it('leave few clients behind, and keep nobody else out', async () => {
    const statuses = new Map<number, number>()
    for (let at = 0; at < 10_000; at += 500) {
      const batch = Array.from({ length: 500 }, (_, index) =>
        registered({ ...CLIENT, client_name: `App ${at + index}` }),
      )
      for (const { status } of await Promise.all(batch)) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    expect((statuses.get(201) ?? 0) + (statuses.get(429) ?? 0)).toBe(10_000)
    // Some pass the count at the same moment.
    expect(statuses.get(201)).toBeLessThan(200)
    const [row] = await world.db.query<{ count: number }>('SELECT count(*)::int AS count FROM oauth_client', [])
    expect(row!.count).toBeLessThan(200)
    // A client that is known already is no new one.
    expect((await registered(CLIENT)).status).toBe(201)
    const other = await world.services.oauth.clients.register({ ...CLIENT, client_name: 'From elsewhere' }, '192.0.2.7')
    expect(other.metadata.client_name).toBe('From elsewhere')
  })
})

describe('10,000 clients that nobody has used', () => {
  it('make room for a new one, the oldest first', async () => {
    await world.db.tx((tx) =>
      tx.query(
        `INSERT INTO oauth_client (client_id, digest, metadata, network, created_at)
         SELECT 'c' || n, sha256(n::text::bytea), '{}', 'network ' || n, n FROM generate_series(1, 10000) n`,
        [],
      ),
    )
    const { clients } = world.services.oauth
    await clients.register({ ...CLIENT, client_name: 'The newest' }, '192.0.2.9')
    const rows = await world.db.query("SELECT 1 FROM oauth_client WHERE client_id IN ('c1', 'c100')", [])
    expect(rows).toEqual([])
    expect(await world.db.query("SELECT 1 FROM oauth_client WHERE client_id = 'c101'", [])).toHaveLength(1)
    await world.db.tx((tx) => tx.query('UPDATE oauth_client SET created_at = $1', [Date.now()]))
    await world.db.tx((tx) =>
      tx.query(
        `INSERT INTO oauth_client (client_id, digest, metadata, network, created_at)
         SELECT 'd' || n, sha256(('d' || n)::bytea), '{}', 'network ' || n, $1::bigint FROM generate_series(1, 200) n`,
        [Date.now()],
      ),
    )
    const refused = clients.register({ ...CLIENT, client_name: 'One too many' }, '192.0.2.9')
    await expect(refused).rejects.toMatchObject({ errcode: 'M_LIMIT_EXCEEDED' })
  })
})

describe('as many clients as are kept', () => {
  it('give way to a new one, the longest unused first, but those that somebody is signed in with', async () => {
    await world.db.tx((tx) => tx.query('DELETE FROM oauth_client', []))
    await inPortions(MAX_CLIENTS, (from, to) =>
      world.db.tx((tx) =>
        tx.query(
          `INSERT INTO oauth_client (client_id, digest, metadata, created_at, used_at)
           SELECT 'u' || n, sha256(('u' || n)::bytea), '{}', n, n FROM generate_series($1::int, $2::int) n`,
          [from, to],
        ),
      ),
    )
    const account = await world.account('faithful')
    await world.db.tx((tx) =>
      tx.query(
        `INSERT INTO oauth_session (user_nid, device_id, client_id, scope, grant_hash, created_at)
         SELECT user_nid, $1, 'u1', '', 'x', 1 FROM matrix_user WHERE user_id = $2`,
        [account.deviceId, account.userId],
      ),
    )
    const { clients } = world.services.oauth
    await clients.register({ ...CLIENT, client_name: 'One more' }, '192.0.2.9')
    const left = await world.db.query<{ client_id: string }>(
      "SELECT client_id FROM oauth_client WHERE client_id IN ('u1', 'u2', 'u501', 'u502') ORDER BY client_id",
      [],
    )
    expect(left.map(({ client_id }) => client_id)).toEqual(['u1', 'u502'])
    await inPortions(MAX_CLIENTS, (from, to) =>
      world.db.tx((tx) =>
        tx.query('UPDATE oauth_client SET used_at = $1 WHERE created_at BETWEEN $2 AND $3', [Date.now(), from, to]),
      ),
    )
    await world.db.tx((tx) =>
      tx.query(
        `INSERT INTO oauth_client (client_id, digest, metadata, created_at, used_at)
         SELECT 'v' || n, sha256(('v' || n)::bytea), '{}', $1::bigint, $1::bigint FROM generate_series(1, 1000) n`,
        [Date.now()],
      ),
    )
    const refused = clients.register({ ...CLIENT, client_name: 'Too many' }, '192.0.2.9')
    await expect(refused).rejects.toMatchObject({ errcode: 'M_LIMIT_EXCEEDED' })
  })
})
