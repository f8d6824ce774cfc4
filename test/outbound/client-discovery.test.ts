import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import type { Dialect } from '../../src/core/paths.ts'
import { discoverAsClient, discoveryHost } from '../../src/outbound/client-discovery.ts'
import type { GuardedClient } from '../../src/outbound/http.ts'
import { type Outside, openOutside } from '../support/outside.ts'
import { json, startTlsServer, type TlsHandler, type TlsServer } from '../support/tls-server.ts'

let outside: Outside
let web: TlsServer
let client: GuardedClient
/** What is served, by path; all else is 404. */
let pages: Record<string, TlsHandler>
let baseUrl: string

beforeAll(async () => {
  outside = await openOutside()
  web = await startTlsServer(outside.authority.issue(['site.test', 'hs.test']), (request, response) => {
    const page = pages[request.url] ?? json({ errcode: 'M_UNRECOGNIZED' }, 404)
    page(request, response)
  })
  for (const host of ['site.test', 'hs.test']) outside.dns.zones.set(host, { addresses: ['127.0.0.1'] })
  client = outside.leading(new Map([['site.test:443', web.port]]))
  baseUrl = `https://hs.test:${web.port}`
})
afterAll(async () => {
  await web.close()
  await outside.close()
})
beforeEach(() => {
  pages = {}
  web.requests.length = 0
})

describe.each<Dialect>(['proto', 'matrix'])('seed 2, discovery at login, %s', (dialect) => {
  const wellKnown = `/.well-known/${dialect}/client`
  const versions = `/_${dialect}/client/versions`
  const status = `/_${dialect}/identity/v2`

  const discover = (who = '@alice:site.test') => discoverAsClient(who, { client, dialect })
  const action = async () => (await discover()).action
  const homeserver = () => ({ 'm.homeserver': { base_url: baseUrl } })
  const identity = (values: unknown) => ({ ...homeserver(), 'm.identity_server': values })

  beforeEach(() => {
    pages[wellKnown] = json(homeserver())
    pages[versions] = json({ versions: ['r0.6.1'] })
    pages[status] = json({})
  })

  test('finds the homeserver of a user, and calls its versions', async () => {
    expect(await discover('@alice:site.test:8448')).toEqual({
      action: 'SUCCESS',
      homeserver: baseUrl,
      identityServer: undefined,
    })
    expect(web.requests.map(({ url, headers }) => [headers.host?.split(':')[0], url])).toEqual([
      ['site.test', wellKnown],
      ['hs.test', versions],
    ])
  })

  test('a base_url may end with a slash', async () => {
    pages[wellKnown] = json({ 'm.homeserver': { base_url: `${baseUrl}/` } })
    expect(await discover()).toMatchObject({ action: 'SUCCESS', homeserver: baseUrl })
  })

  test('404 means IGNORE', async () => {
    delete pages[wellKnown]
    expect(await action()).toBe('IGNORE')
  })

  it.each([204, 400, 401, 403, 500, 503])('%i means FAIL_PROMPT', async (code) => {
    pages[wellKnown] = (_request, response) => response.writeHead(code).end()
    expect(await action()).toBe('FAIL_PROMPT')
  })

  it.each<[string, TlsHandler]>([
    ['an empty body', (_request, response) => response.writeHead(200).end()],
    ['unparsable JSON', (_request, response) => response.writeHead(200).end('{"m.homeserver":')],
    ['a page', (_request, response) => response.writeHead(200).end('<!doctype html>')],
    ['no m.homeserver', json({})],
    ['JSON that is no object', json([])],
    ['an m.homeserver without base_url', json({ 'm.homeserver': {} })],
    ['an m.homeserver that is null', json({ 'm.homeserver': null })],
    ['a base_url that is no text', json({ 'm.homeserver': { base_url: 1 } })],
    ['a broken connection', (_request, response) => response.destroy()],
    ['more than a client reads', json({ ...{ 'm.homeserver': {} }, more: 'x'.repeat(60_000) })],
  ])('%s means FAIL_PROMPT', async (_what, page) => {
    pages[wellKnown] = page
    expect(await action()).toBe('FAIL_PROMPT')
  })

  it.each(['hs.test', 'not a url', '', 'javascript:alert(1)', 'ftp://hs.test', '//hs.test'])(
    'a base_url that is not a URL means FAIL_ERROR: %j',
    async (base_url) => {
      pages[wellKnown] = json({ 'm.homeserver': { base_url } })
      expect(await action()).toBe('FAIL_ERROR')
    },
  )

  it.each<[string, TlsHandler]>([
    ['404', json({}, 404)],
    ['500', json({ versions: ['r0.6.1'] }, 500)],
    ['no versions', json({})],
    ['no list', json({ versions: 'r0.6.1' })],
    ['an empty list', json({ versions: [] })],
    ['numbers', json({ versions: [1] })],
    ['no JSON', (_request, response) => response.end('<html>')],
    ['nothing', (_request, response) => response.destroy()],
  ])('a versions endpoint that answers %s means FAIL_ERROR', async (_what, page) => {
    pages[versions] = page
    expect(await action()).toBe('FAIL_ERROR')
  })

  test('a homeserver that is not there means FAIL_ERROR', async () => {
    pages[wellKnown] = json({ 'm.homeserver': { base_url: 'https://nobody.test' } })
    expect(await action()).toBe('FAIL_ERROR')
  })

  test('an identity server is checked at its status endpoint', async () => {
    pages[wellKnown] = json(identity({ base_url: `${baseUrl}/` }))
    expect(await discover()).toEqual({ action: 'SUCCESS', homeserver: baseUrl, identityServer: baseUrl })
    expect(web.requests.at(-1)?.url).toBe(status)
  })

  it.each([{}, { base_url: null }, null, 'https://hs.test'])(
    'an identity server without base_url means FAIL_ERROR by the seed, FAIL_PROMPT as published: %j',
    async (values) => {
      pages[wellKnown] = json(identity(values))
      expect(await action()).toBe(dialect === 'proto' ? 'FAIL_ERROR' : 'FAIL_PROMPT')
    },
  )

  test('an identity server whose base_url is not a URL means FAIL_ERROR', async () => {
    pages[wellKnown] = json(identity({ base_url: 'hs.test' }))
    expect(await action()).toBe('FAIL_ERROR')
  })

  it.each<[string, TlsHandler]>([
    ['404', json({}, 404)],
    ['no JSON', (_request, response) => response.end('ok')],
    ['nothing', (_request, response) => response.destroy()],
  ])('an identity server whose status is %s means FAIL_ERROR', async (_what, page) => {
    pages[wellKnown] = json(identity({ base_url: baseUrl }))
    pages[status] = page
    expect(await action()).toBe('FAIL_ERROR')
  })

  test('redirects of the well-known are followed', async () => {
    pages[wellKnown] = json({}, 302, { location: `${baseUrl}/elsewhere` })
    pages['/elsewhere'] = json(homeserver())
    expect(await action()).toBe('SUCCESS')
  })
})

describe('the hostname of a user id: what follows the first colon, without its port', () => {
  it.each([
    ['@alice:example.org', 'example.org'],
    ['@alice:example.org:8448', 'example.org'],
    ['@alice:[2a00::1]:8448', '[2a00::1]'],
    ['example.org:443', 'example.org'],
    ['@alice', undefined],
    ['@alice:', undefined],
    ['@alice:a/b', undefined],
  ])('%s: %s', (id, host) => expect(discoveryHost(id)).toBe(host))

  test('an id without one leaves the user to say it', async () => {
    expect(await discoverAsClient('@alice', { client, dialect: 'proto' })).toMatchObject({ action: 'FAIL_PROMPT' })
  })
})
