import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import type { Dialect } from '../../src/core/paths.ts'
import { EVERY_SERVER_WELCOME } from '../../src/core/server-policy.ts'
import { createDiscovery } from '../../src/outbound/discovery.ts'
import {
  createFederation,
  createHomeserverCalls,
  createOpenIdVerifier,
  type Federation,
} from '../../src/outbound/federation.ts'
import { createWellKnown } from '../../src/outbound/well-known.ts'
import { type Outside, openOutside } from '../support/outside.ts'
import { json, startTlsServer, type TlsHandler, type TlsServer } from '../support/tls-server.ts'

let outside: Outside
let server: TlsServer
let name: string
let federation: Federation

beforeAll(async () => {
  outside = await openOutside()
  outside.dns.zones.set('hs.test', { addresses: ['127.0.0.1'] })
  server = await startTlsServer(outside.authority.issue(['hs.test', 'named.test']), json({}))
  name = `hs.test:${server.port}`
})
afterAll(async () => {
  await server.close()
  await outside.close()
})
beforeEach(() => {
  server.requests.length = 0
  federation = speaking(['matrix', 'proto'])
})

function speaking(dialects: readonly Dialect[]): Federation {
  const { client, names } = outside
  const wellKnown = createWellKnown({ client, now: Date.now, dialects })
  const discovery = createDiscovery({ names, wellKnown, now: Date.now, random: Math.random })
  return createFederation({ client, discovery, dialects, sign: () => '', policy: EVERY_SERVER_WELCOME })
}

const paths = () => server.requests.map(({ url }) => url)
const version = (of = name) =>
  federation.request(of, { method: 'GET', path: 'federation/v1/version', timeoutMs: 5_000, maxBytes: 1_000 })

describe('the dialect of a server', () => {
  const knowing =
    (root: string, unknown: TlsHandler): TlsHandler =>
    (request, response) =>
      (request.url.startsWith(`/_${root}/`) ? json({ root }) : unknown)(request, response)

  const UNKNOWN: readonly (readonly [string, TlsHandler])[] = [
    ['404 M_UNRECOGNIZED', json({ errcode: 'M_UNRECOGNIZED' }, 404)],
    ['405 M_UNRECOGNIZED', json({ errcode: 'M_UNRECOGNIZED' }, 405)],
    ['404 of a proxy', (_request, response) => response.writeHead(404).end('<html>not found')],
    ['404 with other JSON', json({ message: 'no route' }, 404)],
  ]
  it.each(UNKNOWN)('is found out by %s, and remembered', async (_what, unknown) => {
    server.handler = knowing('proto', unknown)
    for (let count = 0; count < 3; count++)
      expect(await version()).toMatchObject({ status: 200, body: { root: 'proto' } })
    expect(paths()).toEqual(['matrix', 'proto', 'proto', 'proto'].map((root) => `/_${root}/federation/v1/version`))
  })

  test('is the preferred one where that is known', async () => {
    server.handler = json({})
    await version()
    federation = speaking(['proto', 'matrix'])
    await version()
    expect(paths()).toEqual(['/_matrix/federation/v1/version', '/_proto/federation/v1/version'])
  })

  test('is not doubted for other errors', async () => {
    for (const [status, errcode] of [
      [404, 'M_NOT_FOUND'],
      [403, 'M_FORBIDDEN'],
      [500, 'M_UNKNOWN'],
      [401, 'M_UNKNOWN_TOKEN'],
    ] as const) {
      server.handler = json({ errcode }, status)
      expect(await version()).toMatchObject({ status, body: { errcode } })
    }
    expect(server.requests).toHaveLength(4)
  })

  test('may be neither: the first answer stands', async () => {
    server.handler = (request, response) => json({ errcode: 'M_UNRECOGNIZED', at: request.url }, 404)(request, response)
    expect(await version()).toMatchObject({ status: 404, body: { at: '/_matrix/federation/v1/version' } })
    expect(server.requests).toHaveLength(2)
  })

  test('is found out anew when it changes', async () => {
    server.handler = knowing('proto', json({ errcode: 'M_UNRECOGNIZED' }, 404))
    await version()
    server.handler = knowing('matrix', json({ errcode: 'M_UNRECOGNIZED' }, 404))
    await version()
    expect(await version()).toMatchObject({ status: 200, body: { root: 'matrix' } })
  })

  test('is never tried where the configuration names one', async () => {
    federation = speaking(['matrix'])
    server.handler = json({ errcode: 'M_UNRECOGNIZED' }, 404)
    await version()
    expect(server.requests).toHaveLength(1)
  })
})

describe('a server with several hosts', () => {
  test('is reached by the next one, with the name of the server on the certificate', async () => {
    outside.dns.zones.set('named.test', { fails: 'SERVFAIL' })
    outside.dns.zones.set('_matrix-fed._tcp.named.test', {
      services: [
        { priority: 1, port: 1, name: 'hs.test' },
        { priority: 2, port: 443, name: 'nowhere.test' },
        { priority: 3, port: server.port, name: 'hs.test' },
      ],
    })
    server.handler = json({ up: true })
    expect(await version('named.test')).toMatchObject({ status: 200, body: { up: true } })
    expect(server.requests).toHaveLength(1)
    expect(server.requests[0]).toMatchObject({ headers: { host: 'named.test' }, serverName: 'named.test' })
  })

  test('with a wrong certificate is told nothing', async () => {
    outside.dns.zones.set('_matrix-fed._tcp.forged.test', { services: [{ port: server.port, name: 'hs.test' }] })
    expect(await version('forged.test')).toMatchObject({ ok: false, kind: 'tls' })
    expect(server.requests).toEqual([])
  })

  test('that says it has no service is not called', async () => {
    outside.dns.zones.set('_matrix-fed._tcp.none.test', { services: [{ port: 443, name: '.' }] })
    expect(await version('none.test')).toMatchObject({ ok: false, kind: 'refused' })
  })
})

describe('whom an OpenID token stands for', () => {
  const ask = (token: string, of = name) => createOpenIdVerifier(federation).subjectOf(of, token)

  test('facts 19: is asked by GET openid/userinfo', async () => {
    server.handler = json({ sub: '@a:hs.test' })
    expect(await ask('a token/with?odd&chars')).toBe('@a:hs.test')
    expect(paths()).toEqual(['/_matrix/federation/v1/openid/userinfo?access_token=a%20token%2Fwith%3Fodd%26chars'])
  })

  it.each([
    ['401 M_UNKNOWN_TOKEN', json({ errcode: 'M_UNKNOWN_TOKEN' }, 401)],
    ['403', json({ errcode: 'M_FORBIDDEN' }, 403)],
    ['no sub', json({})],
    ['a sub that is no text', json({ sub: 1 })],
    ['no object', json([])],
  ])('is nobody: %s', async (_what, handler) => {
    server.handler = handler
    expect(await ask('x')).toBeUndefined()
  })

  const UNREACHED: readonly (readonly [string, TlsHandler])[] = [
    ['500', json({}, 500)],
    ['a redirect', json({}, 302, { location: '/_matrix/other' })],
    ['facts S1: more than 5 KiB', json({ sub: '@a:hs.test', more: 'x'.repeat(5_200) })],
    ['a broken connection', (_request, response) => response.destroy()],
  ]
  it.each(UNREACHED)('cannot be told: %s, 502 M_UNKNOWN', async (_what, handler) => {
    server.handler = handler
    await expect(ask('x')).rejects.toMatchObject({ errcode: 'M_UNKNOWN', status: 502 })
  })

  it.each(['nobody.test:1', '127.0.0.2', '[::1]:80', '169.254.169.254', 'a/b'])(
    'facts S2: %s is not asked',
    async (of) => {
      await expect(ask('x', of)).rejects.toMatchObject({ errcode: 'M_UNKNOWN', status: 502 })
    },
  )
})

describe('calls of the identity service', () => {
  const call = (of = name) =>
    createHomeserverCalls(federation).call(of, { method: 'PUT', path: 'federation/v1/3pid/onbind', body: { a: 'ü' } })

  test('bring JSON, and give back status and JSON', async () => {
    server.handler = json({ errcode: 'M_FORBIDDEN' }, 403)
    expect(await call()).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    const [request] = server.requests
    expect(request).toMatchObject({ method: 'PUT', url: '/_matrix/federation/v1/3pid/onbind', body: '{"a":"ü"}' })
    expect(request?.headers).toMatchObject({ 'content-type': 'application/json', 'content-length': '10' })
  })

  test('give no JSON where there was none', async () => {
    server.handler = (_request, response) => response.end('<html>')
    expect(await call()).toMatchObject({ status: 200, body: undefined })
  })

  test('say why a server cannot be reached', async () => {
    await expect(call('127.0.0.2:443')).rejects.toThrow(
      /127\.0\.0\.2 is not on the public internet; outbound\.allow_ranges/,
    )
    await expect(call('nobody.test:443')).rejects.toThrow(/nobody\.test cannot be resolved/)
  })
})
