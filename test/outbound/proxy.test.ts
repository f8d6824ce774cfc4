import { createServer as createHttpServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setImmediate as othersTurn } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Config } from '../../src/config/schema.ts'
import { createGuardedClient, type GuardedClient } from '../../src/outbound/http.ts'
import { createNoProxy } from '../../src/outbound/proxy/no-proxy.ts'
import { type Outside, openOutside, outboundConfig } from '../support/outside.ts'
import { json, startTlsServer, type TlsServer } from '../support/tls-server.ts'

let outside: Outside
let server: TlsServer
let plain: Server
let proxy: Server
/** What the proxy was asked, and how it answers. */
let asked: { readonly target: string | undefined; readonly authorization: string | undefined }[]
let refuses: string | undefined
const clients: GuardedClient[] = []
const open = new Set<Socket>()

beforeAll(async () => {
  outside = await openOutside()
  server = await startTlsServer(outside.authority.issue(['good.test', 'direct.test']), json({ over: 'tls' }))
  plain = createHttpServer((_request, response) => response.end('{"over":"http"}'))
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
  proxy = createHttpServer()
  proxy.on('connect', (request, socket: Socket) => {
    asked.push({ target: request.url, authorization: request.headers['proxy-authorization'] })
    open.add(socket)
    socket.on('error', () => {}).on('close', () => open.delete(socket))
    if (refuses !== undefined) return void socket.end(`HTTP/1.1 ${refuses}\r\n\r\n`)
    const [host, port] = (request.url ?? '').split(':')
    const onward = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    onward.on('error', () => socket.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  for (const client of clients) await client.close()
  for (const socket of open) socket.destroy()
  proxy.close()
  plain.close()
  await server.close()
  await outside.close()
})
beforeEach(() => {
  asked = []
  refuses = undefined
  server.handler = json({ over: 'tls' })
  for (const name of ['good.test', 'direct.test']) outside.dns.zones.set(name, { addresses: ['127.0.0.1'] })
  outside.dns.zones.set('inside.test', { addresses: ['10.1.2.3'] })
})

async function clientWith(values: Partial<Config['outbound']> = {}): Promise<GuardedClient> {
  const { port } = proxy.address() as AddressInfo
  const client = await createGuardedClient({
    config: outboundConfig({
      ca_file: outside.authority.file,
      proxy: `http://hearth:p%40ss@127.0.0.1:${port}`,
      ...values,
    }),
    log: pino({ level: 'silent' }),
    names: outside.names,
  })
  clients.push(client)
  return client
}

const USUAL = { method: 'GET', timeoutMs: 5_000, maxBytes: 10_000 }

test('HTTPS goes through the proxy, which is told the address that was checked, and is TLS from end to end', async () => {
  const client = await clientWith()
  const answer = await client.request({ ...USUAL, url: `https://good.test:${server.port}/x` })
  expect(answer).toMatchObject({ ok: true, status: 200 })
  const authorization = `Basic ${Buffer.from('hearth:p@ss').toString('base64')}`
  expect(asked).toEqual([{ target: `127.0.0.1:${server.port}`, authorization }])
  // The connection is kept, and free from the next turn on.
  await othersTurn()
  await client.request({ ...USUAL, url: `https://good.test:${server.port}/y` })
  expect(asked.length).toBe(1)
})

test('so does HTTP', async () => {
  const client = await clientWith()
  const { port } = plain.address() as AddressInfo
  const answer = await client.request({ ...USUAL, url: `http://good.test:${port}/` })
  expect(answer.ok && answer.body.toString()).toBe('{"over":"http"}')
  expect(asked.length).toBe(1)
})

test('an address that must not be called is not even asked of the proxy, by name or as it is', async () => {
  const client = await clientWith()
  for (const url of ['https://inside.test/', 'https://10.1.2.3/', 'http://[::ffff:10.1.2.3]/'])
    expect(await client.request({ ...USUAL, url }), url).toMatchObject({ ok: false, kind: 'refused' })
  expect(asked).toEqual([])
})

test('a name that leads elsewhere the second time is checked again', async () => {
  const client = await clientWith()
  await client.request({ ...USUAL, url: `https://good.test:${server.port}/` })
  outside.dns.zones.set('good.test', { addresses: ['192.168.0.1'] })
  await client.close()
  const again = await clientWith()
  expect(await again.request({ ...USUAL, url: `https://good.test:${server.port}/` })).toMatchObject({ kind: 'refused' })
})

test('what the operator exempts is called directly, by its name or its address', async () => {
  for (const no_proxy of [['direct.test'], ['test'], ['127.0.0.0/8']]) {
    const client = await clientWith({ no_proxy })
    const answer = await client.request({ ...USUAL, url: `https://direct.test:${server.port}/` })
    expect(answer, no_proxy.join()).toMatchObject({ ok: true })
  }
  expect(asked).toEqual([])
})

test.each([
  ['403 Forbidden', /it does not connect to port \d+: HTTP\/1.1 403 Forbidden/],
  ['407 Proxy Authentication Required', /407/],
])('a proxy that answers %s is a failure to connect, with its words', async (answer, words) => {
  refuses = answer
  const client = await clientWith()
  expect(await client.request({ ...USUAL, url: `https://good.test:${server.port}/` })).toMatchObject({
    ok: false,
    kind: 'connect',
    detail: expect.stringMatching(words),
  })
})

test('so is a proxy that is not there, or is none', async () => {
  for (const away of ['http://127.0.0.1:1', `http://127.0.0.1:${server.port}`]) {
    const client = await clientWith({ proxy: away })
    const answer = await client.request({ ...USUAL, url: `https://good.test:${server.port}/` })
    expect(answer, away).toMatchObject({ ok: false, kind: 'connect' })
    expect(JSON.stringify(answer)).not.toContain('p@ss')
  }
})

test('the certificate is that of the other end: a proxy cannot stand in for it', async () => {
  outside.dns.zones.set('wrong.test', { addresses: ['127.0.0.1'] })
  const client = await clientWith()
  expect(await client.request({ ...USUAL, url: `https://wrong.test:${server.port}/` })).toMatchObject({ kind: 'tls' })
})

test('names stand for their subdomains, and for no other name that ends like them', () => {
  const past = createNoProxy(['Example.org', '*.inner.test', '10.0.0.0/8', '::1'])
  expect(['example.org', 'a.example.org', 'x.inner.test'].map(past.name)).toEqual([true, true, true])
  expect(['badexample.org', 'example.org.evil.test', 'test'].map(past.name)).toEqual([false, false, false])
  expect(['10.9.9.9', '::1', '11.0.0.1', 'no address'].map(past.address)).toEqual([true, true, false, false])
})
