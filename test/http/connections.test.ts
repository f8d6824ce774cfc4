import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { pino } from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import { createMetrics, type Metrics } from '../../src/domain/metrics.ts'
import { type ConnectionBounds, type Connections, createConnections } from '../../src/http/connections.ts'
import { answerBrokenRequest } from '../../src/http/server.ts'
import { type Certificate, selfSigned } from '../support/certificate.ts'
import { openRequest } from '../support/raw-request.ts'
import { startServer } from '../support/server.ts'
import { IS_TWO_NODES } from '../support/two-nodes.ts'
import { waitUntil } from '../support/wait.ts'

const closing: (() => unknown)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

interface Bounded {
  readonly server: Server
  readonly connections: Connections
  readonly metrics: Metrics
  readonly lines: string[]
  /** A connection, and whether it was ended by the other side. */
  open(from?: string): Opened
  count(): Promise<number>
}
interface Opened {
  readonly socket: Socket
  isEnded(): boolean
}

const answer = (_request: IncomingMessage, response: ServerResponse) => void response.end('ok')

async function bounded(
  bounds: Partial<ConnectionBounds>,
  isBehindProxy = false,
  certificate?: Certificate,
): Promise<Bounded> {
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const metrics = createMetrics({ version: '', node: '' })
  const connections = createConnections(
    { inAll: 100, perAddress: 10, trustedProxies: [], ...bounds },
    { metrics: metrics.arrivals, log },
  )
  const options = { headersTimeout: 100, connectionsCheckingInterval: 20 }
  const server = certificate ? createTlsServer({ ...options, ...certificate }, answer) : createServer(options, answer)
  server.on('clientError', answerBrokenRequest)
  connections.bound(server, isBehindProxy)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    server,
    connections,
    metrics,
    lines,
    open(localAddress = '127.0.0.1') {
      const socket = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, localAddress })
      socket.on('error', () => {}).resume()
      let isEnded = false
      socket.once('close', () => {
        isEnded = true
      })
      closing.push(() => socket.destroy())
      return { socket, isEnded: () => isEnded }
    },
    async count() {
      return Number(/^hearth_connections (\d+)$/m.exec(await metrics.text())?.[1])
    },
  }
}

const many = (howMany: number, open: () => Opened): Opened[] => Array.from({ length: howMany }, open)

describe('A9: connections', () => {
  test('A9: of one address are bounded, and those of others are not fewer for it', async () => {
    const { open, count, lines, metrics, server } = await bounded({})
    server.headersTimeout = 60_000
    const storm = many(30, open)
    await waitUntil('20 ended', () => storm.filter(({ isEnded }) => isEnded()).length === 20)
    expect(await count()).toBe(10)
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0]!)).toMatchObject({ times: 1, perAddress: 10 })
    expect(await metrics.text()).toMatch(/^hearth_ended_connections_total\{reason="address"\} 20$/m)
    many(5, () => open('127.0.0.2'))
    await waitUntil('5 more', async () => (await count()) === 15)
    storm.find(({ isEnded }) => !isEnded())?.socket.destroy()
    await waitUntil('a place', async () => (await count()) === 14)
    open()
    await waitUntil('taken again', async () => (await count()) === 15)
  })

  test.each<[string, Partial<ConnectionBounds>, boolean]>([
    ['a trusted proxy', { trustedProxies: ['127.0.0.0/8'] }, false],
    ['a proxy on this machine', {}, true],
  ])('A9: of %s are not bounded by address', async (_, bounds, isBehindProxy) => {
    const { open, count, server } = await bounded(bounds, isBehindProxy)
    server.headersTimeout = 60_000
    many(30, open)
    await waitUntil('all of them', async () => (await count()) === 30)
  })

  test('A9: in all are bounded: one that has said nothing makes room, one that has keeps its place', async () => {
    const { open, count, server } = await bounded({ inAll: 5 }, true)
    server.headersTimeout = 60_000
    const talking = open()
    talking.socket.write('GET / HTTP/1.1\r\nhost: hs\r\n\r\n')
    await new Promise((resolve) => talking.socket.once('data', resolve))
    const silent = many(4, open)
    await waitUntil('full', async () => (await count()) === 5)
    const late = open()
    await waitUntil('room was made', () => silent[0]!.isEnded())
    expect([talking, late].some(({ isEnded }) => isEnded())).toBe(false)
    expect(await count()).toBe(5)
  })

  test('A9: that all say something leave no room for one more', async () => {
    const { open, count, server } = await bounded({ inAll: 3 }, true)
    server.headersTimeout = 60_000
    for (const { socket } of many(3, open)) {
      socket.write('GET / HTTP/1.1\r\nhost: hs\r\n\r\n')
      await new Promise((resolve) => socket.once('data', resolve))
    }
    const late = open()
    await waitUntil('the end of the fourth', late.isEnded)
    expect(await count()).toBe(3)
  })

  test('that have sent nothing are not waited for when the server stops, and those that have begun to are', async () => {
    const { open, count, server, connections } = await bounded({}, true)
    server.headersTimeout = 60_000
    const talking = open()
    const heard = new Promise<Socket>((resolve) => server.once('connection', resolve))
    talking.socket.write('GET / HT')
    const there = await heard
    await waitUntil('half a request', () => there.bytesRead > 0)
    const silent = many(3, open)
    await waitUntil('all four', async () => (await count()) === 4)
    connections.endSilent()
    await waitUntil('the end of the others', () => silent.every(({ isEnded }) => isEnded()))
    expect([await count(), talking.isEnded()]).toEqual([1, false])
  })

  test('that have asked nothing inside TLS are not waited for when the server stops, nor those in their handshake', async () => {
    const { open, count, server, connections } = await bounded({}, true, selfSigned('hs'))
    server.headersTimeout = 60_000
    const inside: Socket[] = []
    server.on('secureConnection', (socket: Socket) => inside.push(socket))
    const openTls = async () => {
      const opened = open()
      const socket = connectTls({ socket: opened.socket, rejectUnauthorized: false }).on('error', () => {})
      await new Promise<void>((resolve) => socket.once('secureConnect', resolve))
      return { ...opened, socket }
    }
    const [silent, talking] = [await openTls(), await openTls()]
    talking.socket.write('GET / HT')
    const beginning = open()
    const heard = new Promise<Socket>((resolve) => server.once('connection', resolve))
    // The first bytes of a handshake.
    beginning.socket.write(Buffer.from([22, 3, 1]))
    const there = await heard
    await waitUntil('half a request', () => there.bytesRead > 0 && inside.some(({ bytesRead }) => bytesRead > 0))
    connections.endSilent()
    await waitUntil('the end of the others', () => silent.isEnded() && beginning.isEnded())
    expect([await count(), talking.isEnded()]).toEqual([1, false])
  })

  test('E1: that say nothing each end by themselves, and the log says it once', async () => {
    const { open, count, lines, metrics } = await bounded({}, true)
    const storm = many(80, open)
    await waitUntil('all ended', () => storm.every(({ isEnded }) => isEnded()))
    await waitUntil('none left', async () => (await count()) === 0)
    expect(lines).toHaveLength(1)
    expect(await metrics.text()).toMatch(/^hearth_ended_connections_total\{reason="silent"\} 80$/m)
  })

  test('A9: of a whole server are as many as its configuration says', async () => {
    const server = await startServer({ limits: { max_connections: 100 } })
    closing.push(() => server.close())
    // The other node listens for news on one.
    const silent = Array.from({ length: IS_TWO_NODES ? 99 : 100 }, () => openRequest(server.baseUrl))
    closing.push(() => silent.map(({ socket }) => socket.destroy()))
    await waitUntil('full', async () => /^hearth_connections 100$/m.test(await server.metrics()))
    expect((await fetch(`${server.baseUrl}/health/live`)).status).toBe(200)
    expect(await server.metrics()).toMatch(/^hearth_ended_connections_total\{reason="made room"\} 1$/m)
  })
})
