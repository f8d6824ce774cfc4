import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import type { Examination, Section, Verdict } from '../../../src/cli/doctor/finding.ts'
import { examineOutside } from '../../../src/cli/doctor.ts'
import type { Config } from '../../../src/config/schema.ts'
import type { ServerName } from '../../../src/core/ids.ts'
import { type Outside, openOutside } from '../../support/outside.ts'
import { runHearth } from '../../support/run-hearth.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import {
  json,
  proxyTo,
  startTlsServer,
  type TlsHandler,
  type TlsRequest,
  type TlsServer,
} from '../../support/tls-server.ts'

/** Whom the proxy of these tests takes everybody for. */
const CALLER = '8.8.4.4'
const SETTINGS = {
  server_name: 'site.test' as ServerName,
  public_base_url: 'https://hs.test',
  trusted_proxies: ['127.0.0.1'],
  well_known: { server: 'hs.test:443' },
}

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hearth-doctor-'))
})
afterAll(() => rm(directory, { recursive: true }))

const found = (sections: readonly Section[], subject: string) =>
  sections.flatMap(({ findings }) => findings).find((finding) => finding.subject === subject)

describe('from outside inwards', () => {
  let outside: Outside
  let hearth: TestServer
  /** The proxy of hs.test, and the web server of site.test. */
  let proxy: TlsServer
  let web: TlsServer
  let routes: Map<string, number>
  let examination: Examination

  /** A proxy as it should be. */
  const good: TlsHandler = (request, response) =>
    passing({ ...request.headers, 'x-forwarded-for': CALLER })(request, response)
  const passing =
    (headers: TlsRequest['headers']): TlsHandler =>
    (request, response) =>
      proxyTo(hearth.baseUrl)({ ...request, headers }, response)

  beforeAll(async () => {
    outside = await openOutside()
    hearth = await startServer(SETTINGS)
    proxy = await startTlsServer(outside.authority.issue(['hs.test'], 60), good)
    web = await startTlsServer(outside.authority.issue(['site.test'], 60), good)
  })
  afterAll(async () => {
    await Promise.all([proxy.close(), web.close()])
    await hearth.close()
    await outside.close()
  })
  beforeEach(() => {
    proxy.handler = good
    web.handler = good
    outside.dns.zones.clear()
    for (const host of ['site.test', 'hs.test']) outside.dns.zones.set(host, { addresses: ['127.0.0.1'] })
    routes = new Map([
      ['hs.test:443', proxy.port],
      ['site.test:443', web.port],
    ])
    const config = { ...hearth.config, data_dir: join(directory, 'elsewhere') }
    examination = { config, client: outside.leading(routes), names: outside.names, now: Date.now }
  })

  const configured = (values: Partial<Config>): void => {
    examination = { ...examination, config: { ...examination.config, ...values } }
  }
  async function verdictOn(subject: string): Promise<readonly [Verdict | undefined, string]> {
    const finding = found(await examineOutside(examination), subject)
    return [finding?.verdict, `${finding?.text} ${finding?.advice ?? ''}`]
  }

  test('a good set-up has nothing but good findings', async () => {
    const sections = await examineOutside(examination)
    const others = sections.flatMap(({ findings }) => findings).filter(({ verdict }) => verdict !== 'ok')
    expect(others).toEqual([])
    expect(sections.map(({ title }) => title)).toEqual([
      'Names',
      'For clients',
      'Through the proxy',
      'For other servers',
      'Calls',
      'Identity service',
    ])
    expect(found(sections, 'callers')?.text).toContain(CALLER)
    expect(found(sections, 'hs.test:443')?.text).toBe('answers as site.test')
    expect(found(sections, 'its certificate')?.text).toMatch(/^good for 59 more days, by An authority for tests$/)
  })

  test('DNS: a name without an address is one problem, and not ten', async () => {
    outside.dns.zones.delete('site.test')
    routes.delete('site.test:443')
    expect(await verdictOn('site.test')).toEqual(['problem', expect.stringContaining('add an A record')])
    const problems = (await examineOutside(examination))
      .flatMap(({ findings }) => findings)
      .filter(({ verdict }) => verdict === 'problem')
    expect(problems.map(({ subject }) => subject)).toEqual(['site.test'])
  })

  test('DNS: a private address is a problem, unless it is allowed', async () => {
    configured({ outbound: { ...examination.config.outbound, allow_ranges: [] } })
    expect(await verdictOn('hs.test')).toEqual(['problem', expect.stringContaining('outbound.allow_ranges')])
  })

  test('ports: one address of two that does not answer', async () => {
    outside.dns.zones.set('hs.test', { addresses: ['127.0.0.1', '127.0.0.9'] })
    routes.set('127.0.0.1:443', proxy.port)
    expect(await verdictOn('127.0.0.9')).toEqual(['problem', expect.stringContaining('some clients try it first')])
    expect((await verdictOn('127.0.0.1'))[0]).toBe('ok')
  })

  test('ports: nothing listens', async () => {
    const gone = await startTlsServer(outside.authority.issue(['hs.test']), good)
    await gone.close()
    routes.set('hs.test:443', gone.port)
    expect(await verdictOn('homeserver')).toEqual(['problem', expect.stringContaining('open the port in the firewall')])
    expect((await verdictOn('proxy'))[0]).toBe('skipped')
  })

  it.each([
    ['of another name', ['other.test'], 60, 'problem', 'get a certificate for the name hs.test'],
    ['that has run out', ['hs.test'], -1, 'problem', 'get a certificate for the name hs.test'],
    ['that soon runs out', ['hs.test'], 5, 'warning', 'renew it now'],
  ])('a certificate %s', async (_what, hosts, days, verdict, advice) => {
    const other = await startTlsServer(outside.authority.issue(hosts, days), good)
    routes.set('hs.test:443', other.port)
    const subject = verdict === 'problem' ? 'homeserver' : 'its certificate'
    expect(await verdictOn(subject)).toEqual([verdict, expect.stringContaining(advice)])
    await other.close()
  })

  describe('well-known for clients', () => {
    const WELL_KNOWN = '/.well-known/matrix/client'
    const saying =
      (handler: TlsHandler): TlsHandler =>
      (request, response) =>
        (request.url === WELL_KNOWN ? handler : good)(request, response)

    it.each<[string, TlsHandler, Verdict, string]>([
      ['that is not there', json({}, 404), 'warning', 'users have to type https://hs.test'],
      ['that is a page', (_request, response) => response.end('<html>'), 'problem', 'FAIL_PROMPT'],
      ['that leads nowhere', json({ 'm.homeserver': { base_url: 'https://nobody.test' } }), 'problem', 'FAIL_ERROR'],
    ])('%s', async (_what, handler, verdict, text) => {
      web.handler = saying(handler)
      expect(await verdictOn(WELL_KNOWN)).toEqual([verdict, expect.stringContaining(text)])
    })

    test('that leads elsewhere', async () => {
      web.handler = saying(json({ 'm.homeserver': { base_url: `https://hs.test:${proxy.port}` } }))
      expect(await verdictOn(WELL_KNOWN)).toEqual([
        'warning',
        expect.stringContaining('the configuration says https://hs.test'),
      ])
    })

    test('that browsers may not read', async () => {
      web.handler = saying(json({ 'm.homeserver': { base_url: 'https://hs.test' } }))
      expect(await verdictOn('well-known')).toEqual([
        'problem',
        expect.stringContaining('lacks Access-Control-Allow-Origin'),
      ])
    })
  })

  describe('a proxy', () => {
    test('that decodes paths', async () => {
      proxy.handler = (request, response) => good({ ...request, url: decodeURIComponent(request.url) }, response)
      expect(await verdictOn('paths')).toEqual(['problem', expect.stringContaining('proxy_pass without a path')])
    })

    test('that refuses encoded slashes', async () => {
      proxy.handler = (request, response) => (/%2f/i.test(request.url) ? json({}, 400) : good)(request, response)
      expect((await verdictOn('paths'))[0]).toBe('problem')
    })

    test('that refuses large requests', async () => {
      proxy.handler = (request, response) =>
        request.body.length > 500_000 ? void response.writeHead(413).end('<html>') : good(request, response)
      expect(await verdictOn('large requests')).toEqual([
        'problem',
        expect.stringContaining('client_max_body_size 1048576'),
      ])
    })

    test('that adds CORS headers of its own', async () => {
      proxy.handler = (request, response) => {
        const { writeHead } = response
        response.writeHead = ((status: number, headers: Record<string, string>) =>
          writeHead.call(response, status, {
            ...headers,
            'access-control-allow-origin': '*, *',
          })) as typeof writeHead
        good(request, response)
      }
      expect(await verdictOn('browsers')).toEqual(['problem', expect.stringContaining('"*, *": browsers refuse it')])
    })

    test('that answers OPTIONS itself', async () => {
      proxy.handler = (request, response) => (request.method === 'OPTIONS' ? json({}, 405) : good)(request, response)
      expect((await verdictOn('browsers'))[0]).toBe('problem')
    })

    test('that passes on what clients say of themselves', async () => {
      proxy.handler = (request, response) =>
        passing({ 'x-forwarded-for': CALLER, ...request.headers })(request, response)
      expect(await verdictOn('callers')).toEqual(['problem', expect.stringContaining('can pose as any address')])
    })

    test('that does not say who calls', async () => {
      proxy.handler = (request, response) => {
        const { 'x-forwarded-for': _said, ...headers } = request.headers
        passing(headers)(request, response)
      }
      expect((await verdictOn('callers'))[0]).toBe('skipped')
      configured({ trusted_proxies: [] })
      expect(await verdictOn('callers')).toEqual(['warning', expect.stringContaining('add it to trusted_proxies')])
    })
  })

  describe('the identity service', () => {
    test('may be all there is', async () => {
      configured({ roles: ['identity'], server_name: 'hs.test' as ServerName })
      const sections = await examineOutside(examination)
      expect(sections.map(({ title, findings }) => [title, ...findings.map(({ verdict }) => verdict)])).toEqual([
        ['Names', 'ok'],
        ['Identity service', 'ok', 'ok', 'ok'],
      ])
    })

    test('that the proxy does not pass on to', async () => {
      proxy.handler = (request, response) => (/identity/.test(request.url) ? json({}, 404) : good)(request, response)
      expect(await verdictOn('identity service')).toEqual(['problem', expect.stringContaining('/_matrix/identity')])
    })
  })

  describe('for other servers', () => {
    test('a delegation that is not there, or leads elsewhere', async () => {
      web.handler = (request, response) => (request.url.endsWith('/server') ? json({}, 404) : good)(request, response)
      expect(await verdictOn('/.well-known/matrix/server')).toEqual([
        'problem',
        expect.stringContaining('is not there'),
      ])
      web.handler = (request, response) =>
        (request.url.endsWith('/server') ? json({ 'm.server': 'old.test:443' }) : good)(request, response)
      expect(await verdictOn('/.well-known/matrix/server')).toEqual([
        'problem',
        expect.stringContaining('leads to old.test:443'),
      ])
      configured({ well_known: {} })
      expect((await verdictOn('/.well-known/matrix/server'))[0]).toBe('warning')
    })

    test('without one, port 8448 has to be open', async () => {
      const { port } = await startTlsServer(outside.authority.issue(['site.test']), good).then(async (gone) => {
        await gone.close()
        return gone
      })
      configured({ well_known: {} })
      web.handler = (request, response) => (request.url.endsWith('/server') ? json({}, 404) : good)(request, response)
      routes.set('site.test:8448', port)
      expect(await verdictOn('site.test:8448')).toEqual([
        'problem',
        expect.stringContaining('or set well_known.server to site.test:443'),
      ])
    })

    test('an SRV record that says there is no service', async () => {
      web.handler = (request, response) => (request.url.endsWith('/server') ? json({}, 404) : good)(request, response)
      outside.dns.zones.set('_matrix._tcp.site.test', { services: [{ port: 0, name: '.' }] })
      expect((await verdictOn('discovery'))[0]).toBe('problem')
    })

    test('another server answers', async () => {
      proxy.handler = (request, response) =>
        (request.url.includes('/key/') ? json({ server_name: 'other.test' }) : good)(request, response)
      expect(await verdictOn('hs.test:443')).toEqual([
        'problem',
        expect.stringContaining('is the server of other.test'),
      ])
      proxy.handler = (request, response) => (request.url.includes('/key/') ? json({}, 502) : good)(request, response)
      expect(await verdictOn('hs.test:443')).toEqual(['problem', expect.stringContaining('answers 502')])
    })

    test('the same name with another key answers', async () => {
      const data_dir = join(directory, 'keys')
      await runHearth(['keys', 'show', '--set', `data_dir=${data_dir}`], { directory })
      configured({ data_dir })
      expect(await verdictOn('hs.test:443')).toEqual(['problem', expect.stringContaining('with another key')])
    })
  })
})
