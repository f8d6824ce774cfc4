import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AccountServer, startAccountServer } from '../../support/account-server.ts'
import { type IdentityApi, openIdentity } from '../identity-api.ts'

let server: AccountServer
let identity: IdentityApi

beforeAll(async () => {
  server = await startAccountServer()
  identity = openIdentity(server.baseUrl)
})

afterAll(() => server.close())

describe('seed 1, "Status"', () => {
  it.each(['/_matrix/identity/v2', '/_proto/identity/v2', '/_matrix/identity/api/v1', '/_proto/identity/api/v1'])(
    'GET %s: 200 {}',
    async (path) => {
      expect(await identity.ask('GET', path)).toMatchObject({ status: 200, body: {} })
      expect(await identity.ask('GET', `${path}/`)).toMatchObject({ status: 200, body: {} })
    },
  )

  it('GET identity/versions lists releases, in each dialect its own', async () => {
    const proto = await identity.ask('GET', '/_proto/identity/versions')
    const matrix = await identity.ask('GET', '/_matrix/identity/versions')
    expect(proto.body.versions).toEqual(['r0.1.0', 'r0.2.0', 'r0.2.1', 'r0.3.0'])
    expect(matrix.body.versions).toEqual(expect.arrayContaining(['r0.3.0', 'v1.1', 'v1.2']))
  })
})

describe('seed 1, "Errors": every error body is JSON with errcode and error', () => {
  it.each([
    ['GET', '/nothing', 404],
    ['GET', '/pubkey', 404],
    ['DELETE', '', 405],
    ['PUT', '/', 405],
  ])('%s %s: %i M_UNRECOGNIZED, with cross-origin headers', async (method, path, status) => {
    for (const root of ['/_proto/identity/v2', '/_matrix/identity/v2', '/_proto/identity/api/v1']) {
      const answer = await identity.ask(method, root + path)
      expect(answer).toMatchObject({ status, body: { errcode: 'M_UNRECOGNIZED', error: expect.any(String) } })
      expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
    }
  })
})

describe('seed 1, "What the service does" 7: browser clients', () => {
  it('preflights are answered with the recommended values', async () => {
    const { status, headers } = await identity.ask('OPTIONS', '/_proto/identity/v2/lookup')
    expect(status).toBe(204)
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('access-control-allow-methods')).toBe('GET, POST, PUT, DELETE, OPTIONS')
    expect(headers.get('access-control-allow-headers')).toBe(
      'Origin, X-Requested-With, Content-Type, Accept, Authorization',
    )
  })
})

describe('roles', () => {
  it('seed 1, "Versioning" 2: P1 switched off is an unknown path, and P2 stays', async () => {
    const modern = await startAccountServer({ identity: { v1_api: { enabled: false } } })
    const { ask } = openIdentity(modern.baseUrl)
    expect(await ask('GET', '/_proto/identity/api/v1')).toMatchObject({
      status: 404,
      body: { errcode: 'M_UNRECOGNIZED' },
    })
    expect(await ask('GET', '/_proto/identity/v2')).toMatchObject({ status: 200 })
    await modern.close()
  })

  it('identity alone serves nothing of the homeserver, client alone nothing of the identity service', async () => {
    const [alone, without] = await Promise.all([
      startAccountServer({ roles: ['identity'] }),
      startAccountServer({ roles: ['client'] }),
    ])
    const statusOf = async (at: AccountServer, path: string) => (await fetch(at.baseUrl + path)).status
    const client = '/_matrix/client/versions'
    const own = '/_matrix/identity/v2'
    expect([await statusOf(alone, client), await statusOf(alone, own)]).toEqual([404, 200])
    expect([await statusOf(without, client), await statusOf(without, own)]).toEqual([200, 404])
    await Promise.all([alone, without].map((each) => each.close()))
  })
})
