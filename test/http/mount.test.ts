import { type AddressInfo, connect } from 'node:net'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ProtocolError } from '../../src/core/errors.ts'
import type { UserId } from '../../src/core/ids.ts'
import { Type } from '../../src/core/shapes.ts'
import type { Requester } from '../../src/domain/accounts/requester.ts'
import { createMetrics } from '../../src/domain/metrics.ts'
import type { Services } from '../../src/domain/services.ts'
import { createBodyIntake } from '../../src/http/body-intake.ts'
import type { Caller } from '../../src/http/caller.ts'
import { addressReader } from '../../src/http/client-address.ts'
import { createCompression } from '../../src/http/compression.ts'
import { AnyObject, type Endpoint, endpoint, rawReply } from '../../src/http/endpoint.ts'
import { apiOf, mountApis } from '../../src/http/mount.ts'
import { CLIENT_CODES, IDENTITY_CODES, type Role } from '../../src/http/role.ts'
import { createServer } from '../../src/http/server.ts'
import type { Json } from '../support/api.ts'
import { waitUntil } from '../support/wait.ts'

const people: Record<string, Requester> = {
  alice: { userId: '@alice:hs' as UserId, userNid: 1, deviceId: 'A', tokenNid: 7, isGuest: false },
  guest: { userId: '@guest:hs' as UserId, userNid: 2, deviceId: 'G', tokenNid: 8, isGuest: true },
}

let aborted = 0
let waiting = 0

const endpoints = [
  endpoint(
    'PUT C/rooms/{roomId}/send/{eventType}/{txnId}',
    { auth: 'user', body: AnyObject, also: ['CU/org.test/{roomId}/{eventType}'] },
    ({ params, path, dialect, body, bodyOffence, requester, ip, userAgent, id }) => ({
      params,
      path,
      dialect,
      body,
      offence: bodyOffence ?? null,
      token: requester.tokenNid,
      ip,
      userAgent,
      id,
    }),
  ),
  endpoint(
    'GET C/query',
    {
      auth: 'none',
      query: Type.Object({
        limit: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
        flag: Type.Optional(Type.Boolean()),
        ratio: Type.Optional(Type.Number()),
        name: Type.Optional(Type.String()),
        via: Type.Optional(Type.Array(Type.String())),
        dir: Type.Optional(Type.Union([Type.Literal('f'), Type.Literal('b')])),
      }),
    },
    ({ query }) => query,
  ),
  endpoint('GET C/optional', { auth: 'optional' }, ({ requester }) => ({ user: requester?.userId ?? null })),
  endpoint('GET C/guests', { auth: 'user', guests: true }, ({ requester }) => ({ user: requester.userId })),
  endpoint('GET C/teapot', { auth: 'none' }, () =>
    rawReply({ status: 418, headers: { 'content-type': 'text/plain', 'x-kind': 'pot' }, body: Buffer.from('short') }),
  ),
  endpoint('GET C/bad-header', { auth: 'none' }, async () =>
    rawReply({ status: 303, headers: { location: '/caf\u00e9\u2615\n', 'x-kind': 'pot' }, body: '' }),
  ),
  endpoint('GET C/wait', { auth: 'none' }, ({ signal }) => {
    waiting += 1
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        aborted += 1
        resolve({})
      })
    })
  }),
]

const identity = [
  endpoint('POST P2/lookup', { auth: 'user', body: Type.Object({ pepper: Type.String() }) }, () => ({})),
  endpoint(
    'POST P2/form',
    {
      auth: 'none',
      forms: true,
      body: Type.Object({ sid: Type.String(), send_attempt: Type.Integer(), next_link: Type.Optional(Type.String()) }),
    },
    ({ body }) => body,
  ),
  endpoint('POST P2/limited', { auth: 'identity', unknownToken: 'M_UNKNOWN_TOKEN' }, ({ requester }) => requester),
  endpoint('POST P2/open', { auth: 'identity-optional', beforeTerms: true }, ({ requester }) => ({
    user: requester?.userId ?? null,
  })),
  endpoint('GET P2/hash_details', { auth: 'none', query: Type.Object({ sid: Type.String() }) }, () => ({})),
]

let baseUrl: string
let close: () => Promise<void>

beforeAll(async () => {
  const log = pino({ level: 'silent' })
  const addressOf = addressReader([])
  const { arrivals } = createMetrics({ version: '', node: '' })
  const intake = createBodyIntake({ addressOf, longest: 100_000, metrics: arrivals, log })
  const app = createServer({ log, metrics: { observeRequest: () => {}, arrivals }, intake })
  const role: Omit<Role, 'codes'> = { maxBodyBytes: 100_000, authenticate: async (token) => people[token] }
  const compression = createCompression(addressOf)
  const deps = { services: {} as Services, log, addressOf, intake, compression }
  const api = (some: readonly Endpoint[], of: Role) =>
    apiOf(
      () => some,
      () => of,
    )
  const admit = (_caller: Caller, { options }: Endpoint) => {
    if (!options.beforeTerms) throw new ProtocolError('M_TERMS_NOT_SIGNED', 'Not yet.')
  }
  const headers = { 'cache-control': 'no-store' }
  const apis = [
    api(endpoints, { ...role, codes: CLIENT_CODES }),
    api(identity.slice(0, 1), { ...role, codes: IDENTITY_CODES, maxBodyBytes: 100 }),
    api(identity.slice(1), { ...role, codes: IDENTITY_CODES, maxBodyBytes: 100, headers, admit }),
  ]
  mountApis(app, apis, deps)
  await app.listen({ host: '127.0.0.1', port: 0 })
  baseUrl = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  close = () => app.close()
})

afterAll(() => close())

async function ask(path: string, init: RequestInit & { token?: string } = {}): Promise<{ status: number; body: Json }> {
  const { token, ...rest } = init
  const headers = { 'user-agent': 'test', ...(token && { authorization: `Bearer ${token}` }) }
  const answer = await fetch(baseUrl + path, { headers, ...rest })
  return { status: answer.status, body: await answer.json() }
}

describe('a request as its handler sees it', () => {
  const put = (path: string, body: string) => ask(path, { method: 'PUT', body, token: 'alice' })

  it('has decoded parameters, and a path without dialect and release', async () => {
    const expected = {
      params: { roomId: '!r:hs', eventType: 'm.a/b', txnId: 'x y' },
      path: 'C/rooms/!r%3Ahs/send/m.a%2Fb/x%20y',
      body: { a: 1 },
      offence: null,
      token: 7,
      ip: '127.0.0.1',
      userAgent: 'test',
      id: expect.any(String),
    }
    const rest = 'rooms/%21r%3Ahs/send/m.a%2Fb/x%20y'
    const matrix = await put(`/_matrix/client/v3/${rest}`, '{"a":1}')
    expect(matrix.body).toEqual({ ...expected, dialect: 'matrix' })
    const proto = await put(`/_proto/client/r0/${rest.replace('%21', '!').replace('%3A', ':')}`, '{"a":1}')
    expect(proto.body).toEqual({ ...expected, dialect: 'proto' })
  })

  it('has an empty string for what another path lacks', async () => {
    const { body } = await put('/_matrix/client/unstable/org.test/!r:hs/m.x', '{}')
    expect(body.params).toEqual({ roomId: '!r:hs', eventType: 'm.x', txnId: '' })
  })

  it.each([
    ['{"a":1.0}', 'float'],
    ['{"a":-0}', 'negative-zero'],
    ['{"a":9007199254740992}', 'integer-range'],
    ['{"a":"\\ud800"}', 'lone-surrogate'],
    ['{"a":9007199254740991}', null],
  ])('says of %s what canonical JSON forbids', async (text, offence) => {
    const { body } = await put('/_matrix/client/v3/rooms/!r:hs/send/m.x/1', text)
    expect(body.offence).toBe(offence)
  })

  it('is aborted when the client goes away', async () => {
    const { hostname, port } = new URL(baseUrl)
    const socket = connect(Number(port), hostname, () =>
      socket.write('GET /_matrix/client/v3/wait HTTP/1.1\r\nhost: x\r\n\r\n'),
    )
    await waitUntil('the request', () => waiting === 1)
    expect(aborted).toBe(0)
    socket.destroy()
    await waitUntil('the abort', () => aborted === 1)
  })
})

describe('query parameters', () => {
  const query = (text: string) => ask(`/_matrix/client/v3/query?${text}`)

  it('come as the types that are declared', async () => {
    const { body } = await query('limit=10&flag=true&ratio=0.5&name=a+b%2B&via=x&via=y&dir=b&other=1')
    expect(body).toEqual({ limit: 10, flag: true, ratio: 0.5, name: 'a b+', via: ['x', 'y'], dir: 'b' })
    expect((await query('via=x')).body).toEqual({ via: ['x'] })
    expect((await query('')).body).toEqual({})
    expect((await query('name=__proto__&__proto__=1')).body).toEqual({ name: '__proto__' })
  })

  it.each([
    ['limit=ten', 'limit'],
    ['limit=1.5', 'limit'],
    ['limit=1e1', 'limit'],
    ['limit=0x10', 'limit'],
    ['limit=-1', 'limit'],
    ['limit=101', 'limit'],
    ['limit=99999999999999999999', 'limit'],
    ['flag=yes', 'flag'],
    ['ratio=NaN', 'ratio'],
    ['dir=up', 'dir'],
    ['name=a&name=b', 'name'],
  ])('%s is refused by name', async (text, name) => {
    const { status, body } = await query(text)
    expect([status, body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
    expect(body.error).toContain(`'${name}'`)
  })
})

describe('who may call', () => {
  it('is asked for a token or not, as declared', async () => {
    expect((await ask('/_matrix/client/v3/optional')).body).toEqual({ user: null })
    expect((await ask('/_matrix/client/v3/optional', { token: 'alice' })).body).toEqual({ user: '@alice:hs' })
    expect(await ask('/_matrix/client/v3/optional', { token: 'mallory' })).toMatchObject({ status: 401 })
    expect((await ask('/_matrix/client/v3/guests', { token: 'guest' })).body).toEqual({ user: '@guest:hs' })
    const refused = await ask('/_matrix/client/v3/rooms/!r:hs/send/m.x/1', {
      method: 'PUT',
      body: '{}',
      token: 'guest',
    })
    expect(refused).toMatchObject({ status: 403, body: { errcode: 'M_GUEST_ACCESS_FORBIDDEN' } })
  })

  it('prefers the header to the query', async () => {
    const { body } = await ask('/_matrix/client/v3/guests?access_token=guest', { token: 'alice' })
    expect(body).toEqual({ user: '@alice:hs' })
  })
})

describe('a raw reply', () => {
  it('answers although a handler gave a header that HTTP does not allow', async () => {
    const answer = await fetch(`${baseUrl}/_matrix/client/v3/bad-header`, { redirect: 'manual' })
    expect(answer.status).toBe(500)
    expect((await answer.json()) as Json).toMatchObject({ errcode: 'M_UNKNOWN' })
    expect(answer.headers.get('x-kind')).toBeNull()
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  })

  it('is sent as it is', async () => {
    const answer = await fetch(`${baseUrl}/_matrix/client/v3/teapot`)
    expect([answer.status, await answer.text()]).toEqual([418, 'short'])
    expect(answer.headers.get('content-type')).toBe('text/plain')
    expect(answer.headers.get('x-kind')).toBe('pot')
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  })
})

describe('the codes of the identity role', () => {
  const path = '/_matrix/identity/v2'
  it.each([
    ['no token', `${path}/lookup`, { method: 'POST', body: '{}' }, 401, 'M_UNAUTHORIZED'],
    ['a foreign token', `${path}/lookup`, { method: 'POST', body: '{}', token: 'x' }, 401, 'M_UNAUTHORIZED'],
    ['a missing key', `${path}/lookup`, { method: 'POST', body: '{}', token: 'alice' }, 400, 'M_MISSING_PARAMS'],
    ['a missing parameter', `${path}/hash_details`, {}, 400, 'M_MISSING_PARAMS'],
    [
      'its own body limit',
      `${path}/lookup`,
      { method: 'POST', body: 'x'.repeat(101), token: 'alice' },
      413,
      'M_TOO_LARGE',
    ],
  ])('%s', async (_name, url, init, status, errcode) => {
    expect(await ask(url, init)).toMatchObject({ status, body: { errcode } })
  })
})

describe('a form for a body', () => {
  const post = (body: string, contentType: string, query = '') =>
    fetch(`${baseUrl}/_matrix/identity/v2/form${query}`, {
      method: 'POST',
      body,
      headers: { 'content-type': contentType },
    })
  const FORM = 'application/x-www-form-urlencoded'
  const read = async (answer: Response) => ({ status: answer.status, body: (await answer.json()) as Json })

  it.each([
    ['sid=a+b%2B&send_attempt=2', FORM],
    ['sid=a+b%2B&send_attempt=2', `${FORM}; charset=utf-8`],
    ['sid=a+b%2B&send_attempt=2', 'application/x-form-www-urlencoded'],
    ['{"sid":"a b+","send_attempt":2}', 'application/json'],
    ['{"sid":"a b+","send_attempt":2}', 'text/plain'],
  ])('%s as %s is read with its types', async (text, type) => {
    expect(await read(await post(text, type))).toEqual({ status: 200, body: { sid: 'a b+', send_attempt: 2 } })
  })

  it.each(['', 'null', ' null\n'])('the query counts where the body is %j', async (text) => {
    const answer = await post(text, 'application/json', '?sid=q&send_attempt=3&next_link=n')
    expect(await read(answer)).toEqual({ status: 200, body: { sid: 'q', send_attempt: 3, next_link: 'n' } })
  })

  it('the query does not count beside a body', async () => {
    expect(await read(await post('{"sid":"a"}', 'application/json', '?send_attempt=3'))).toMatchObject({ status: 400 })
    expect(await read(await post('sid=a', FORM, '?send_attempt=3'))).toMatchObject({ status: 400 })
  })

  it.each([
    ['sid=a', FORM, 'M_MISSING_PARAMS'],
    ['', FORM, 'M_MISSING_PARAMS'],
    ['sid=a&sid=b&send_attempt=1', FORM, 'M_INVALID_PARAM'],
    ['sid=a&send_attempt=one', FORM, 'M_INVALID_PARAM'],
    ['sid=a&send_attempt=1.5', FORM, 'M_INVALID_PARAM'],
    ['sid=%zz&send_attempt=1', FORM, 'M_INVALID_PARAM'],
    ['sid=%ff&send_attempt=1', FORM, 'M_INVALID_PARAM'],
    ['{"sid":"a","send_attempt":"1"}', 'application/json', 'M_INVALID_PARAM'],
    ['{"sid":1,"send_attempt":1}', 'application/json', 'M_INVALID_PARAM'],
    ['[]', 'application/json', 'M_BAD_JSON'],
    ['"null"', 'application/json', 'M_BAD_JSON'],
    ['sid=a&send_attempt=1', 'application/json', 'M_NOT_JSON'],
  ])('%s as %s is refused with %s', async (text, type, errcode) => {
    expect(await read(await post(text, type))).toMatchObject({ status: 400, body: { errcode } })
  })
})

describe('a role of its own', () => {
  const path = '/_matrix/identity/v2'
  it('has the last word on who is admitted, and its own headers', async () => {
    const answer = await fetch(`${baseUrl}${path}/limited`, {
      method: 'POST',
      headers: { authorization: 'Bearer alice' },
    })
    expect([answer.status, ((await answer.json()) as Json).errcode]).toEqual([403, 'M_TERMS_NOT_SIGNED'])
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const unknown = await ask(`${path}/limited`, { method: 'POST', token: 'mallory' })
    expect(unknown).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } })
    expect(await ask(`${path}/limited`, { method: 'POST' })).toMatchObject({ body: { errcode: 'M_UNAUTHORIZED' } })
  })

  it('may leave a token out where it is optional, but not send a wrong one', async () => {
    expect(await ask(`${path}/open`, { method: 'POST' })).toEqual({ status: 200, body: { user: null } })
    expect(await ask(`${path}/open`, { method: 'POST', token: 'alice' })).toMatchObject({ body: { user: '@alice:hs' } })
    expect(await ask(`${path}/open`, { method: 'POST', token: 'mallory' })).toMatchObject({ status: 401 })
  })
})
