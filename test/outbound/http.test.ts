import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { connect } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest'
import { failureOf } from '../../src/outbound/failures.ts'
import { createGuardedClient, type HttpRequest } from '../../src/outbound/http.ts'
import { createNames } from '../../src/outbound/names.ts'
import { selfSigned } from '../support/certificate.ts'
import { type Outside, openOutside, outboundConfig } from '../support/outside.ts'
import { json, startTlsServer, type TlsHandler, type TlsServer } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

let outside: Outside
let server: TlsServer

beforeAll(async () => {
  outside = await openOutside()
  server = await startTlsServer(outside.authority.issue(['good.test', 'other.test', 'new.test', '127.0.0.1']), json({}))
})
afterAll(async () => {
  await server.close()
  await outside.close()
})
beforeEach(() => {
  server.handler = json({ hello: 'world' })
  server.requests.length = 0
  outside.dns.zones.clear()
  for (const name of ['good.test', 'other.test', 'new.test', 'wrong.test'])
    outside.dns.zones.set(name, { addresses: ['127.0.0.1'] })
})

const USUAL = { method: 'GET', timeoutMs: 5_000, maxBytes: 10_000 }
const ask = (request: Partial<HttpRequest> & { url: string }) => outside.client.request({ ...USUAL, ...request })
const at = (host: string, path = '/') => `https://${host}:${server.port}${path}`

async function refusal(request: Partial<HttpRequest> & { url: string }): Promise<string> {
  const answer = await ask(request)
  if (answer.ok) expect.unreachable(`answered ${answer.status}`)
  return answer.kind
}

describe('a request', () => {
  test('brings method, path, headers and body there, and the answer back', async () => {
    server.handler = json({ made: true }, 201, { 'x-two': 'a' })
    const answer = await ask({
      url: at('good.test', '/a%20b?c=d'),
      method: 'PUT',
      headers: { 'x-one': '1' },
      body: '{"ü":1}',
    })
    expect(answer).toMatchObject({
      ok: true,
      status: 201,
      headers: { 'x-two': 'a' },
      url: at('good.test', '/a%20b?c=d'),
    })
    expect(answer.ok && answer.body.toString()).toBe('{"made":true}')
    const [request] = server.requests
    expect(request).toMatchObject({ method: 'PUT', url: '/a%20b?c=d', body: '{"ü":1}', serverName: 'good.test' })
    expect(request?.headers).toMatchObject({
      host: `good.test:${server.port}`,
      'accept-encoding': 'identity',
      'content-length': '8',
      'x-one': '1',
    })
  })

  test('keeps its connection for the next one', async () => {
    await ask({ url: at('good.test') })
    const before = server.connections()
    for (let count = 0; count < 5; count++) expect(await ask({ url: at('good.test') })).toMatchObject({ ok: true })
    expect(server.connections()).toBe(before)
  })

  test('leaves no more connections open than it may: those, to all servers, that were used last', async () => {
    const client = await createGuardedClient({
      config: outboundConfig({ ca_file: outside.authority.file }),
      log: pino({ level: 'silent' }),
      names: outside.names,
      openConnections: 2,
    })
    try {
      const askOf = (host: string) => client.request({ ...USUAL, url: at(host) })
      // Connections that fail are none, and end nothing else.
      expect(await askOf('wrong.test')).toMatchObject({ ok: false, kind: 'tls' })
      const nobody = { host: 'good.test', port: 1 }
      expect(await client.request({ ...USUAL, url: at('good.test'), via: nobody })).toMatchObject({ ok: false })
      const made = async (...hosts: string[]) => {
        const before = server.connections()
        for (const host of hosts) expect(await askOf(host)).toMatchObject({ ok: true })
        return server.connections() - before
      }
      expect(await made('good.test', 'other.test', 'new.test')).toBe(3)
      expect(await made('other.test', 'new.test', 'other.test')).toBe(0)
      expect(await made('good.test')).toBe(1)
      expect(await made('other.test')).toBe(0)
      expect(await made('new.test')).toBe(1)
      // What has a request stays open, however many there are.
      const waiting: (() => void)[] = []
      server.handler = (request, response) => waiting.push(() => json({})(request, response))
      const busy = ['good.test', 'other.test', 'new.test', 'other.test'].map(askOf)
      await waitUntil('all to be asked', () => waiting.length === busy.length)
      for (const answer of waiting) answer()
      expect((await Promise.all(busy)).map(({ ok }) => ok)).not.toContain(false)
    } finally {
      await client.close()
    }
  })

  test('is made once, also where its connection is closed for another at that moment', async () => {
    const client = await createGuardedClient({
      config: outboundConfig({ ca_file: outside.authority.file }),
      log: pino({ level: 'silent' }),
      names: outside.names,
      openConnections: 1,
    })
    try {
      const hosts = ['good.test', 'other.test', 'new.test']
      const wanted = Array.from({ length: 60 }, (_, index) => `/${index}`)
      const askFrom = async (first: number) => {
        for (let index = first; index < wanted.length; index += 4) {
          const url = at(hosts[index % 3]!, wanted[index])
          expect(await client.request({ ...USUAL, method: 'POST', body: '{}', url })).toMatchObject({ ok: true })
        }
      }
      await Promise.all([0, 1, 2, 3].map(askFrom))
      expect(server.requests.map(({ url }) => url).toSorted()).toEqual(wanted.toSorted())
    } finally {
      await client.close()
    }
  })

  test('may go elsewhere than its URL says, which still names Host and certificate', async () => {
    const via = { host: 'other.test', port: server.port }
    expect(await ask({ url: 'https://good.test/x', via })).toMatchObject({ ok: true })
    expect(server.requests[0]).toMatchObject({ headers: { host: 'good.test' }, serverName: 'good.test' })
    expect(await refusal({ url: 'https://wrong.test/x', via })).toBe('tls')
  })

  test('to an IP address names no server, and its certificate is for the address', async () => {
    expect(await ask({ url: at('127.0.0.1') })).toMatchObject({ ok: true })
    expect(server.requests[0]?.serverName).toBeUndefined()
  })
})

describe('addresses', () => {
  it.each([
    '127.0.0.2',
    '127.2',
    '0x7f.2',
    '2130706434',
    '0177.0.0.2',
    '１２７.０.０.２',
    '[::1]',
    '[::ffff:127.0.0.2]',
    '[0:0:0:0:0:ffff:7f00:2]',
    '0.0.0.0',
    '[::]',
    '169.254.169.254',
  ])('security rows 76 to 78: %s is not called', async (host) => {
    expect(await refusal({ url: at(host) })).toBe('refused')
    expect(
      await refusal({ url: 'https://good.test/', via: { host: host.replace(/^\[|\]$/g, ''), port: server.port } }),
    ).toBe('refused')
  })

  it.each(['127.1', '0x7f.1', '2130706433', '[::ffff:127.0.0.1]'])('%s is the open 127.0.0.1', async (host) => {
    const answer = await ask({ url: at(host) })
    // The certificate has the usual spelling; as IPv6 it is another name.
    expect(answer.ok || answer.kind).toBe(host.startsWith('[') ? 'tls' : true)
  })

  it.each(['127.0.0.2', '10.0.0.1', '::1', 'fe80::1', '::ffff:10.0.0.1'])(
    'a name for %s is not called',
    async (address) => {
      outside.dns.zones.set('evil.test', { addresses: [address] })
      expect(await refusal({ url: at('evil.test') })).toBe('refused')
    },
  )

  test('of several, those that are open are used', async () => {
    outside.dns.zones.set('good.test', { addresses: ['10.0.0.1', '::1', '127.0.0.1'] })
    expect(await ask({ url: at('good.test') })).toMatchObject({ ok: true })
  })

  test('security row 83: a name that is public when asked first and private then is judged each time', async () => {
    const inner = await startTlsServer(outside.authority.issue(['flips.test']), json({ secret: true }), '127.0.0.2')
    const outer = await startTlsServer(
      outside.authority.issue(['flips.test']),
      json({}, 200, { connection: 'close' }),
      '127.0.0.1',
      inner.port,
    )
    let asked = 0
    outside.dns.zones.set('flips.test', () => ({ addresses: [asked++ < 2 ? '127.0.0.1' : '127.0.0.2'] }))
    const url = `https://flips.test:${inner.port}/`
    expect(await ask({ url })).toMatchObject({ ok: true })
    for (let count = 0; count < 5; count++) expect(await refusal({ url })).toBe('refused')
    expect(inner.connections()).toBe(0)
    await Promise.all([inner.close(), outer.close()])
  })

  it.each(['file:///etc/passwd', 'ftp://good.test/', 'https://user:pass@good.test/', 'https://', 'data:,x', '//x', ''])(
    '%s is not called',
    async (url) => expect(await refusal({ url })).toBe('refused'),
  )
})

describe('certificates', () => {
  test('of an authority that is not known are refused', async () => {
    const impostor = await startTlsServer(selfSigned('good.test'), json({}))
    expect(await refusal({ url: `https://good.test:${impostor.port}/` })).toBe('tls')
    expect(impostor.requests).toEqual([])
    await impostor.close()
  })

  test('for another name are refused', async () => {
    expect(await refusal({ url: at('wrong.test') })).toBe('tls')
    expect(server.requests).toEqual([])
  })

  test('that have run out are refused', async () => {
    const late = await startTlsServer(outside.authority.issue(['good.test'], -1), json({}))
    expect(await refusal({ url: `https://good.test:${late.port}/` })).toBe('tls')
    await late.close()
  })

  test('are no use with TLS older than 1.2', async () => {
    const ciphers = 'DEFAULT@SECLEVEL=0'
    const { cert, key } = outside.authority.issue(['good.test'])
    for (const [maxVersion, expected] of [
      ['TLSv1.1', 'tls'],
      ['TLSv1.2', true],
    ] as const) {
      const old = createHttpsServer({ cert, key, ciphers, minVersion: 'TLSv1', maxVersion }, (_request, response) =>
        response.end('{}'),
      )
      await new Promise<void>((resolve) => old.listen(0, '127.0.0.1', resolve))
      const answer = await ask({ url: `https://good.test:${(old.address() as AddressInfo).port}/` })
      expect(answer.ok || answer.kind).toBe(expected)
      old.closeAllConnections()
      old.close()
    }
  })

  test('of an authority of outbound.ca_file are refused without it', async () => {
    const client = await createGuardedClient({
      config: outboundConfig(),
      log: pino({ level: 'silent' }),
      names: outside.names,
    })
    expect(await client.request({ ...USUAL, url: at('good.test') })).toMatchObject({ ok: false, kind: 'tls' })
    await client.close()
  })

  test('of no authority at all, outbound.ca_file is refused at start', async () => {
    for (const ca_file of ['/nowhere.pem', import.meta.filename]) {
      const opening = createGuardedClient({ config: outboundConfig({ ca_file }), log: pino({ level: 'silent' }) })
      await expect(opening).rejects.toThrow(/^outbound.ca_file: /)
    }
  })
})

describe('redirects', () => {
  const to = (location: string, status = 302) => json({}, status, { location })

  test('are followed as often as said', async () => {
    server.handler = (request, response) => {
      const left = Number(request.url.slice(1))
      if (left === 0) json({ done: true })(request, response)
      else to(`/${left - 1}`)(request, response)
    }
    expect(await ask({ url: at('good.test', '/5'), redirects: 5 })).toMatchObject({
      ok: true,
      url: at('good.test', '/0'),
    })
    expect(await refusal({ url: at('good.test', '/6'), redirects: 5 })).toBe('refused')
    expect(await refusal({ url: at('good.test', '/1') })).toBe('refused')
  })

  test('in a circle end', async () => {
    server.handler = to('/again')
    expect(await refusal({ url: at('good.test'), redirects: 5 })).toBe('refused')
    expect(server.requests).toHaveLength(6)
  })

  it.each([
    'https://127.0.0.2/',
    'https://[::1]/',
    'https://2130706434/',
    'http://good.test/',
    'file:///etc/passwd',
    '//169.254.169.254/x',
  ])('security row 81: to %s are not followed', async (location) => {
    server.handler = to(location)
    expect(await refusal({ url: at('good.test'), redirects: 5 })).toBe('refused')
    expect(server.requests).toHaveLength(1)
  })

  test('of what is not a GET are not followed', async () => {
    server.handler = to('/x', 307)
    expect(await refusal({ url: at('good.test'), method: 'POST', body: 'x', redirects: 5 })).toBe('refused')
  })

  test('to another host leave behind what was meant for the first', async () => {
    server.handler = (request, response) =>
      (request.url === '/' ? to(at('other.test', '/x')) : json({}))(request, response)
    const headers = { authorization: 'Bearer secret' }
    expect(await ask({ url: at('good.test'), headers, redirects: 1 })).toMatchObject({ ok: true })
    expect(server.requests.map((request) => request.headers.authorization)).toEqual(['Bearer secret', undefined])
  })
})

describe('answers', () => {
  test('that are too long are broken off', async () => {
    let written = 0
    server.handler = (_request, response) => {
      response.writeHead(200)
      const chunk = Buffer.alloc(65_536)
      const more = (): void => {
        if (response.destroyed) return
        written += chunk.length
        response.write(chunk, () => setImmediate(more))
      }
      more()
    }
    expect(await refusal({ url: at('good.test'), maxBytes: 100_000 })).toBe('too-large')
    expect(written).toBeLessThan(20_000_000)
  })

  test('security row 72: that are compressed are not unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000))
    server.handler = (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)
    const answer = await ask({ url: at('good.test'), maxBytes: 100_000 })
    expect(answer.ok && answer.body.length).toBe(bomb.length)
  })

  test('that come drop by drop, or not at all, are not waited for', async () => {
    const dripping: TlsHandler = (_request, response) => {
      response.writeHead(200)
      const drop = setInterval(() => response.write('x'), 20)
      response.on('close', () => clearInterval(drop))
    }
    server.handler = dripping
    const dripped = await ask({ url: at('good.test'), timeoutMs: 4_000 })
    expect(dripped).toMatchObject({ kind: 'timeout', detail: 'it answers too slowly' })
    server.handler = () => {}
    const silent = await ask({ url: at('good.test'), timeoutMs: 300 })
    expect(silent).toMatchObject({ kind: 'timeout', detail: 'it took too long' })
  })

  test('that say how long they are are not begun with where that is too long', async () => {
    server.handler = (_request, response) => response.writeHead(200, { 'content-length': 100_001 }).flushHeaders()
    expect(await refusal({ url: at('good.test'), maxBytes: 100_000 })).toBe('too-large')
  })

  test('of a server that has not given any yet are asked for two at a time, and all at once when it has', async () => {
    const before = server.connections()
    let asked = 0
    server.handler = () => void asked++
    const vain = Array.from({ length: 6 }, () => refusal({ url: at('new.test'), timeoutMs: 500 }))
    expect(await Promise.all(vain)).toEqual(Array(6).fill('timeout'))
    expect([asked, server.connections() - before]).toEqual([2, 2])
    let release = (): void => {}
    const all = new Promise<void>((resolve) => {
      release = resolve
    })
    asked = 0
    server.handler = async (request, response) => {
      if (++asked === 7) release()
      if (asked > 1) await all
      json({})(request, response)
    }
    expect((await ask({ url: at('new.test') })).ok).toBe(true)
    const together = Array.from({ length: 6 }, () => ask({ url: at('new.test'), timeoutMs: 10_000 }))
    expect((await Promise.all(together)).map(({ ok }) => ok)).toEqual(Array(6).fill(true))
  })

  test('that were given up are no reason to connect again', async () => {
    let [asked, closed] = [0, 0]
    const before = server.connections()
    server.handler = json({})
    expect((await ask({ url: at('other.test') })).ok).toBe(true)
    server.handler = (_request, response) => {
      if (++asked % 2 === 0) response.writeHead(200).write('{')
      response.on('close', () => closed++)
    }
    const given = Array.from({ length: 6 }, () => refusal({ url: at('other.test'), timeoutMs: 300 }))
    expect(await Promise.all(given)).toEqual(Array(6).fill('timeout'))
    // On a busy machine one may be given up before it arrives.
    await waitUntil('the ends of the connections', () => asked > 0 && closed === asked)
    server.handler = json({})
    expect((await ask({ url: at('other.test') })).ok).toBe(true)
    expect(server.connections() - before).toBeLessThanOrEqual(7)
  })

  test('of servers that say nothing when connected to are not waited for', async () => {
    const sockets: Socket[] = []
    const mute = createServer((socket) => void sockets.push(socket))
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
    const { port } = mute.address() as { port: number }
    expect(await refusal({ url: `https://good.test:${port}/`, timeoutMs: 300 })).toBe('timeout')
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => mute.close(resolve))
  })

  test('of name servers that say nothing are not waited for', async () => {
    outside.dns.zones.set('slow.test', { fails: 'silence' })
    expect(await refusal({ url: at('slow.test'), timeoutMs: 300 })).toBe('timeout')
  })

  test('that are no HTTP', async () => {
    const odd = createServer((socket) =>
      socket
        .on('error', () => {})
        .resume()
        .end('SSH-2.0-x\r\n'),
    )
    await new Promise<void>((resolve) => odd.listen(0, '127.0.0.1', resolve))
    const { port } = odd.address() as { port: number }
    expect(await refusal({ url: `http://good.test:${port}/` })).toBe('protocol')
    expect(await refusal({ url: `https://good.test:${port}/` })).toBe('tls')
    await new Promise((resolve) => odd.close(resolve))
  })
})

describe('what cannot be reached', () => {
  test('has no address', async () => {
    expect(await refusal({ url: 'https://nobody.test/' })).toBe('dns')
    outside.dns.zones.set('broken.test', { fails: 'SERVFAIL' })
    expect(await refusal({ url: 'https://broken.test/' })).toBe('dns')
  })

  test('does not listen', async () => {
    const gone = await startTlsServer(outside.authority.issue(['good.test']), json({}))
    await gone.close()
    expect(await refusal({ url: `https://good.test:${gone.port}/` })).toBe('connect')
  })
})

test('names of the hosts file are found without DNS', async () => {
  const names = createNames([outside.dns.address])
  expect(await names.addressesOf('localhost')).toContainEqual({ address: '127.0.0.1', family: 4 })
  expect(outside.dns.questions).not.toContain('A localhost')
})

test('a server of these tests does refuse an old protocol', async () => {
  const socket = connect({ port: server.port, host: '127.0.0.1', ca: outside.authority.cert, servername: 'good.test' })
  await new Promise((resolve) => socket.once('secureConnect', resolve))
  expect(socket.getProtocol()).toMatch(/^TLSv1\.[23]$/)
  socket.destroy()
})

describe('an answer that is read as it comes', () => {
  const stream = (path: string, more: object = {}) =>
    outside.client.stream({ ...USUAL, bodyMs: 5_000, url: at('good.test', path), ...more })

  async function endOfBody(more: object = {}): Promise<string> {
    const answer = await stream('/', more)
    if (!answer.ok) return answer.kind
    let text = ''
    try {
      for await (const chunk of answer.body) text += chunk.toString()
    } catch (error) {
      return failureOf(error).kind
    }
    return text
  }

  test('has its header before its body has ended', async () => {
    let more = (_text: string): void => {}
    server.handler = (_request, response) => {
      response.writeHead(200).write('one ')
      more = (text) => response.end(text)
    }
    const answer = await stream('/')
    if (!answer.ok) return expect.unreachable(answer.detail)
    const chunks: string[] = []
    for await (const chunk of answer.body) {
      chunks.push(chunk.toString())
      if (chunks.length === 1) more('two')
    }
    expect(chunks.join('')).toBe('one two')
  })

  test('ends where it is too long, takes too long, or breaks off', async () => {
    server.handler = (_request, response) => response.end('x'.repeat(20_000))
    expect(await endOfBody()).toBe('too-large')
    server.handler = (_request, response) => void response.writeHead(200).write('x')
    expect(await endOfBody({ bodyMs: 200 })).toBe('timeout')
    server.handler = (_request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('x')
      response.socket?.destroySoon()
    }
    expect(['connect', 'protocol']).toContain(await endOfBody())
    server.handler = () => {}
    expect(await endOfBody({ timeoutMs: 200 })).toBe('timeout')
  })

  test('of a redirect comes from where it leads, unless that is a private address', async () => {
    server.handler = ({ url }, response) => {
      if (url === '/') response.writeHead(307, { location: '/there' }).end('moved')
      else response.end(url)
    }
    expect(await endOfBody()).toBe('refused')
    expect(await endOfBody({ redirects: 1 })).toBe('/there')
    server.handler = json({}, 302, { location: 'https://10.0.0.1/' })
    expect(await endOfBody({ redirects: 1 })).toBe('refused')
  })
})
