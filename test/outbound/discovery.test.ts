import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { createDiscovery, type Discovery } from '../../src/outbound/discovery.ts'
import type { GuardedClient } from '../../src/outbound/http.ts'
import { createWellKnown } from '../../src/outbound/well-known.ts'
import { type Outside, openOutside } from '../support/outside.ts'
import { json, startTlsServer, type TlsHandler, type TlsServer } from '../support/tls-server.ts'

const SITES = ['site.test', 'elsewhere.test', 'hs.site.test', 'SITE.test']
const MINUTE = 60_000
const HOUR = 60 * MINUTE

let outside: Outside
let web: TlsServer
let client: GuardedClient
let discovery: Discovery
let now = 1_700_000_000_000

beforeAll(async () => {
  outside = await openOutside()
  web = await startTlsServer(outside.authority.issue(['site.test', 'elsewhere.test', 'hs.site.test']), json({}))
  client = outside.leading(new Map(SITES.map((site) => [`${site.toLowerCase()}:443`, web.port])))
})
afterAll(async () => {
  await web.close()
  await outside.close()
})
beforeEach(() => {
  web.requests.length = 0
  web.handler = json({}, 404)
  outside.dns.zones.clear()
  outside.dns.questions.length = 0
  for (const site of SITES) outside.dns.zones.set(site.toLowerCase(), { addresses: ['127.0.0.1'] })
  discovery = fresh()
})

function fresh(dialects: readonly ('matrix' | 'proto')[] = ['matrix', 'proto']): Discovery {
  const wellKnown = createWellKnown({ client, now: () => now, dialects })
  return createDiscovery({ names: outside.names, wellKnown, now: () => now, random: () => 0.5 })
}

/** Only one of the two well-knowns answers. */
function saying(body: unknown, dialect = 'matrix', headers: Record<string, string> = {}): TlsHandler {
  return (request, response) => {
    const isIt = request.url === `/.well-known/${dialect}/server`
    json(isIt ? body : {}, isIt ? 200 : 404, headers)(request, response)
  }
}

const service = (name: string, port: number, target: string) =>
  outside.dns.zones.set(name, { services: [{ port, name: target }] })

/** Where a server is found: what names it, and what is connected to. */
async function places(server: string): Promise<string[]> {
  const { targets } = await discovery.find(server)
  return targets.map(({ origin, via }) => `${origin} at ${via.host}:${via.port}`)
}

describe('a server name by itself', () => {
  it.each([
    ['1.2.3.4', 'https://1.2.3.4 at 1.2.3.4:8448'],
    ['1.2.3.4:5', 'https://1.2.3.4:5 at 1.2.3.4:5'],
    ['[2a00::1]', 'https://[2a00::1] at [2a00::1]:8448'],
    ['[2a00::1]:5', 'https://[2a00::1]:5 at [2a00::1]:5'],
    ['site.test:5', 'https://site.test:5 at site.test:5'],
  ])('%s (steps 1 and 2): %s', async (server, place) => {
    service('_matrix-fed._tcp.site.test', 1, 'hs.site.test')
    expect(await places(server)).toEqual([place])
    expect(web.requests).toEqual([])
    expect(outside.dns.questions).toEqual([])
  })

  it.each(['site.test:0', 'site.test:65536', 'a/b', 'a?b', 'a#b', 'a@b', '[::1', 'a b', '', 'site.test:5:6', 'a\r\nb'])(
    'facts S2: %j is called nowhere',
    async (server) => {
      expect(await places(server)).toEqual([])
      expect(web.requests).toEqual([])
    },
  )
})

describe('delegation by well-known', () => {
  it.each([
    ['1.2.3.4', 'https://1.2.3.4 at 1.2.3.4:8448'],
    ['[2a00::1]:77', 'https://[2a00::1]:77 at [2a00::1]:77'],
    ['hs.site.test:77', 'https://hs.site.test:77 at hs.site.test:77'],
    ['hs.site.test', 'https://hs.site.test at hs.site.test:8448'],
  ])('to %s (steps 3.1, 3.2 and 3.5): %s', async (delegate, place) => {
    web.handler = saying({ 'm.server': delegate })
    expect(await places('site.test')).toEqual([place])
    expect(web.requests[0]).toMatchObject({ url: '/.well-known/matrix/server', headers: { host: 'site.test' } })
  })

  it.each(['_matrix-fed._tcp', '_matrix._tcp'])('to a host with %s (steps 3.3 and 3.4)', async (name) => {
    web.handler = saying({ 'm.server': 'hs.site.test' })
    service(`${name}.hs.site.test`, 4443, 'machine.test')
    service(`${name}.site.test`, 1, 'not-this.test')
    expect(await places('site.test')).toEqual(['https://hs.site.test at machine.test:4443'])
  })

  test('seed 3: is read from .well-known/proto/server too', async () => {
    web.handler = saying({ 'm.server': 'hs.site.test:1' }, 'proto')
    expect(await places('site.test')).toEqual(['https://hs.site.test:1 at hs.site.test:1'])
    expect(web.requests.map(({ url }) => url)).toEqual(['/.well-known/matrix/server', '/.well-known/proto/server'])
    discovery = fresh(['matrix'])
    expect(await places('site.test')).toEqual(['https://site.test at site.test:8448'])
  })

  test('seed 3: redirects are followed', async () => {
    web.handler = (request, response) => {
      const isFirst = request.headers.host === 'site.test'
      const location = `https://elsewhere.test:${web.port}/a.json`
      if (isFirst) json({}, 302, { location })(request, response)
      else json({ 'm.server': 'hs.site.test:1' })(request, response)
    }
    expect(await places('site.test')).toEqual(['https://hs.site.test:1 at hs.site.test:1'])
  })

  const UNUSABLE: readonly (readonly [string, TlsHandler])[] = [
    ['404', json({ 'm.server': 'hs.site.test:1' }, 404)],
    ['500', json({ 'm.server': 'hs.site.test:1' }, 500)],
    ['no JSON', (_request, response) => response.end('<html>')],
    ['nothing', (_request, response) => response.end()],
    ['a list', json([])],
    ['null', json(null)],
    ['no m.server', json({ server: 'hs.site.test:1' })],
    ['a number', json({ 'm.server': 1 })],
    ['an address with a path', json({ 'm.server': 'hs.site.test/x' })],
    ['an address with a scheme', json({ 'm.server': 'https://hs.site.test' })],
    ['a name with another inside', json({ 'm.server': 'user@hs.site.test' })],
    ['port 0', json({ 'm.server': 'hs.site.test:0' })],
    ['port 65536', json({ 'm.server': 'hs.site.test:65536' })],
    ['deep nesting', (_request, response) => response.end('['.repeat(20_000))],
    ['security row 65: more than 50 KiB', json({ 'm.server': 'hs.site.test:1', more: 'x'.repeat(51_200) })],
    ['seed 3: redirects in a circle', json({}, 302, { location: '/.well-known/matrix/server' })],
    ['a redirect to a private address', json({}, 302, { location: 'https://127.0.0.2/' })],
    ['a broken connection', (_request, response) => response.destroy()],
  ]
  it.each(UNUSABLE)('that says %s does not make discovery fail', async (_what, handler) => {
    web.handler = handler
    expect(await places('site.test')).toEqual(['https://site.test at site.test:8448'])
  })

  test('of a host that cannot be resolved does not make discovery fail', async () => {
    expect(await places('gone.test')).toEqual(['https://gone.test at gone.test:8448'])
  })

  test('is asked once by many at the same time', async () => {
    web.handler = saying({ 'm.server': 'hs.site.test:1' })
    const found = await Promise.all(
      Array.from({ length: 20 }, (_, index) => places(index % 2 ? 'site.test' : 'SITE.test')),
    )
    expect(new Set(found.flat())).toEqual(new Set(['https://hs.site.test:1 at hs.site.test:1']))
    expect(web.requests).toHaveLength(1)
  })
})

describe('how long a delegation holds', () => {
  async function heldFor(headers: Record<string, string>): Promise<number> {
    web.handler = saying({ 'm.server': 'hs.site.test:1' }, 'matrix', headers)
    await places('site.test')
    const begun = now
    while (web.requests.length === 1 && now - begun < 100 * HOUR) {
      now += 5 * MINUTE
      await places('site.test')
    }
    return (now - begun) / HOUR
  }

  it.each([
    ['nothing', {}, 24],
    ['max-age of an hour', { 'cache-control': 'public, max-age=3600' }, 1],
    ['max-age of a year', { 'cache-control': 'max-age=31536000' }, 48],
    ['max-age of nothing', { 'cache-control': 'max-age=0' }, 1 / 12],
    ['no-store', { 'cache-control': 'no-store' }, 1 / 12],
    ['an Expires in the past', { expires: 'Thu, 01 Jan 1970 00:00:00 GMT' }, 1 / 12],
    ['an Expires that is none', { expires: 'soon' }, 24],
  ])('by %s: %j, %d hours', async (_what, headers, hours) => {
    expect(await heldFor(headers as Record<string, string>)).toBeCloseTo(hours, 1)
  })

  test('a host without one is asked again after an hour', async () => {
    await places('site.test')
    now += HOUR - 1
    await places('site.test')
    expect(web.requests).toHaveLength(2)
    now += 1
    await places('site.test')
    expect(web.requests).toHaveLength(4)
  })

  test('a host that fails is asked less and less, once an hour at least, and keeps its delegate for 48 hours', async () => {
    web.handler = saying({ 'm.server': 'hs.site.test:1' }, 'matrix', { 'cache-control': 'max-age=3600' })
    await places('site.test')
    const begun = now
    web.handler = json({}, 503)
    const asked: number[] = []
    for (now += HOUR; now - begun < 49 * HOUR; now += MINUTE) {
      const before = web.requests.length
      const found = await places('site.test')
      if (web.requests.length > before) asked.push((now - begun) / MINUTE - 60)
      const isKept = now - begun < 48 * HOUR || found[0] === 'https://site.test at site.test:8448'
      expect(isKept).toBe(true)
      if (now - begun < 47 * HOUR) expect(found).toEqual(['https://hs.site.test:1 at hs.site.test:1'])
    }
    expect(asked.slice(0, 8)).toEqual([0, 1, 3, 7, 15, 31, 63, 123])
    expect(await places('site.test')).toEqual(['https://site.test at site.test:8448'])
  })
})

describe('SRV records', () => {
  test('of _matrix-fed._tcp go before those of _matrix._tcp (steps 4 and 5)', async () => {
    service('_matrix._tcp.site.test', 1, 'old.test')
    expect(await places('site.test')).toEqual(['https://site.test at old.test:1'])
    discovery = fresh()
    service('_matrix-fed._tcp.site.test', 2, 'new.test')
    expect(await places('site.test')).toEqual(['https://site.test at new.test:2'])
  })

  test('without any, port 8448 (step 6)', async () => {
    expect(await places('site.test')).toEqual(['https://site.test at site.test:8448'])
  })

  test('are tried by priority, and heavier ones sooner; five at most', async () => {
    const services = [
      { priority: 20, weight: 0, port: 3, name: 'c.test' },
      { priority: 10, weight: 1, port: 2, name: 'b.test' },
      { priority: 10, weight: 100, port: 1, name: 'a.test' },
      ...[30, 40, 50, 60].map((priority) => ({ priority, weight: 0, port: priority, name: 'd.test' })),
    ]
    outside.dns.zones.set('_matrix-fed._tcp.site.test', { services })
    const { targets } = await discovery.find('site.test')
    expect(targets.map(({ via }) => via.port)).toEqual([1, 2, 3, 30, 40])
  })

  test('with port 0 or no host are no service', async () => {
    service('_matrix-fed._tcp.site.test', 0, 'a.test')
    expect(await places('site.test')).toEqual([])
    discovery = fresh()
    service('_matrix-fed._tcp.site.test', 443, '.')
    expect(await places('site.test')).toEqual([])
  })

  test('hold for five minutes', async () => {
    service('_matrix-fed._tcp.site.test', 1, 'a.test')
    await places('site.test')
    service('_matrix-fed._tcp.site.test', 2, 'a.test')
    now += 5 * MINUTE - 1
    expect(await places('site.test')).toEqual(['https://site.test at a.test:1'])
    now += 1
    expect(await places('site.test')).toEqual(['https://site.test at a.test:2'])
  })

  test('of name servers that fail count as none', async () => {
    outside.dns.zones.set('_matrix-fed._tcp.site.test', { fails: 'SERVFAIL' })
    expect(await places('site.test')).toEqual(['https://site.test at site.test:8448'])
  })
})
