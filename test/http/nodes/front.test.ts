import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createHealth } from '../../../src/cli/serve/health.ts'
import { nodeProof } from '../../../src/core/signing/node-proof.ts'
import { createMetrics } from '../../../src/domain/metrics.ts'
import { addressReader } from '../../../src/http/client-address.ts'
import { createConnections } from '../../../src/http/connections.ts'
import { askForBody, isBodyWithheld, judgeFirst } from '../../../src/http/expect-continue.ts'
import { type Front, openFront } from '../../../src/http/nodes/front.ts'
import { CONNECTIONS } from '../../../src/http/server.ts'
import { openRequest } from '../../support/raw-request.ts'
import { waitUntil } from '../../support/wait.ts'

const SECRET = 'the secret of the nodes of this test'
const log = pino({ level: 'silent' })
const opened: { close(): void }[] = []

const connections = () =>
  createConnections(
    { inAll: 1000, perAddress: 1000, trustedProxies: [] },
    { metrics: createMetrics({ version: '0', node: '' }).arrivals, log },
  )

async function openNode(secret = SECRET, secondMs?: number): Promise<{ front: Front; clients: Server; url: string }> {
  const front = await openFront({
    secret,
    host: '127.0.0.1',
    port: 0,
    connections: connections(),
    now: Date.now,
    log,
    secondMs,
    answersItself(request, response) {
      if (request.url !== '/health/live') return false
      response.end('alive')
      return true
    },
  })
  const clients = createServer(CONNECTIONS, front.routing)
  await new Promise<void>((resolve) => clients.listen(0, '127.0.0.1', resolve))
  for (const server of [clients, front.server])
    opened.push({
      close() {
        server.close()
        server.closeAllConnections()
      },
    })
  opened.push(front)
  return { front, clients, url: `http://127.0.0.1:${(clients.address() as AddressInfo).port}` }
}

const addressOf = addressReader([])

const always = () => true

/** Says what it got. */
const echo: RequestListener = (request, response) => {
  askForBody(request)
  void text(request).then((body) => {
    response.writeHead(201, { 'x-thing': 'kept', 'content-type': 'application/json' })
    const { method, url, headers, socket } = request
    const address = addressOf(socket.remoteAddress, headers['x-forwarded-for']?.toString())
    response.end(JSON.stringify({ method, url, address, authorization: headers.authorization, body }))
  })
}

let first: Awaited<ReturnType<typeof openNode>>
let second: Awaited<ReturnType<typeof openNode>>
beforeEach(async () => {
  first = await openNode()
  second = await openNode()
})
afterEach(() => {
  for (const one of opened.splice(0)) one.close()
})

describe('a node that stands by', () => {
  it('passes a request on whole, with the address of its client, and the answer back', async () => {
    first.front.serve(echo, always)
    second.front.passTo(first.front.address)
    for (const body of ['', 'short', 'x'.repeat(300_000)]) {
      const answer = await fetch(`${second.url}/a/b%2Fc?d=e`, {
        method: body === '' ? 'GET' : 'PUT',
        headers: { authorization: 'Bearer token' },
        ...(body !== '' && { body }),
      })
      expect(answer.status).toBe(201)
      expect(answer.headers.get('x-thing')).toBe('kept')
      expect(await answer.json()).toEqual({
        method: body === '' ? 'GET' : 'PUT',
        url: '/a/b%2Fc?d=e',
        address: '127.0.0.1',
        authorization: 'Bearer token',
        body,
      })
    }
  })

  it('says where a body ends, whatever the method', async () => {
    first.front.serve(echo, always)
    second.front.passTo(first.front.address)
    for (const method of ['DELETE', 'OPTIONS', 'POST']) {
      for (const body of ['GET /inner HTTP/1.1\r\nhost: x\r\n\r\n', 'x'.repeat(200_000)]) {
        // The length of a stream is not known.
        const sent = { method, body: new Blob([body]).stream(), duplex: 'half' as const }
        const answer = await fetch(`${second.url}/outer`, sent)
        expect(await answer.json()).toMatchObject({ method, url: '/outer', body })
      }
    }
  })

  it('passes on each signature of a server that signs with several keys', async () => {
    const signatures = ['X-Matrix one', 'X-Matrix two']
    first.front.serve((incoming, response) => {
      response.end(JSON.stringify(incoming.headersDistinct.authorization))
    }, always)
    second.front.passTo(first.front.address)
    const { hostname, port } = new URL(second.url)
    const answered = new Promise<string>((resolve, reject) => {
      const headers = { authorization: signatures } as unknown as Record<string, string[]>
      const came = (incoming: IncomingMessage): void => resolve(text(incoming))
      request({ hostname, port, headers }, came).once('error', reject).end()
    })
    expect(JSON.parse(await answered)).toEqual(signatures)
  })

  it('passes headers on that are as long as they may be', async () => {
    first.front.serve(echo, always)
    second.front.passTo(first.front.address)
    const { hostname, port } = new URL(second.url)
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { 'x-long': 'y'.repeat(CONNECTIONS.maxHeaderSize - 120) }
      request({ hostname, port, headers }, (incoming) => resolve(incoming.statusCode))
        .once('error', reject)
        .end()
    })
    expect(status).toBe(201)
  })

  it('asks a client for the body that it withholds', async () => {
    first.front.serve(echo, always)
    second.front.passTo(first.front.address)
    judgeFirst(second.clients, second.front.routing)
    const { hostname, port } = new URL(second.url)
    const answered = new Promise<string>((resolve, reject) => {
      const asked = request({ hostname, port, method: 'PUT', headers: { expect: '100-continue', 'content-length': 4 } })
      asked.once('continue', () => asked.end('body'))
      asked.once('response', (incoming) => resolve(text(incoming)))
      asked.once('error', reject)
      asked.flushHeaders()
    })
    expect(JSON.parse(await answered)).toMatchObject({ method: 'PUT', body: 'body' })
  })

  it('does not wait for a body that comes drop by drop, nor for one that does not come', async () => {
    const slow = await openNode(SECRET, 10)
    first.front.serve(echo, always)
    slow.front.passTo(first.front.address)
    const { hostname, port } = new URL(slow.url)
    const refused = (sent: string) =>
      new Promise<unknown>((resolve, reject) => {
        const asked = request({ hostname, port, method: 'PUT', headers: { 'content-length': 50_000 } })
        asked.once('response', async (incoming) =>
          resolve([incoming.statusCode, JSON.parse(await text(incoming)).error]),
        )
        asked.once('error', reject)
        asked.flushHeaders()
        asked.write(sent)
      })
    for (const sent of [' ', 'x'.repeat(5_000)])
      expect(await refused(sent)).toEqual([408, 'The request body came too slowly. Try again.'])
    expect((await fetch(slow.url, { method: 'PUT', body: 'whole' })).status).toBe(201)
  })

  it('asks for no body that the node does not want', async () => {
    first.front.serve((request, response) => {
      expect(isBodyWithheld(request)).toBe(true)
      response.writeHead(401, { connection: 'close' }).end()
    }, always)
    second.front.passTo(first.front.address)
    judgeFirst(second.clients, second.front.routing)
    const { hostname, port } = new URL(second.url)
    for (const length of [4, 2_000_000]) {
      const outcome = await new Promise((resolve, reject) => {
        const headers = { expect: '100-continue', 'content-length': length }
        const asked = request({ hostname, port, method: 'PUT', headers })
        asked.once('continue', () => resolve('asked'))
        asked.once('response', (incoming) => resolve(incoming.statusCode))
        asked.once('error', reject)
        asked.flushHeaders()
      })
      expect(outcome).toBe(401)
    }
  })

  it('brings an answer that comes before the body has been read, and the next request finds its way', async () => {
    first.front.serve((request, response) => {
      if (request.method !== 'POST') return echo(request, response)
      // As the server does: it answers at once, and discards the rest.
      request.resume()
      response.writeHead(413).end('too long')
    }, always)
    second.front.passTo(first.front.address)
    for (let n = 0; n < 3; n++) {
      const refused = await fetch(second.url, { method: 'POST', body: 'x'.repeat(2_000_000) })
      expect([refused.status, await refused.text()]).toEqual([413, 'too long'])
      expect((await fetch(second.url, { method: 'OPTIONS' })).status).toBe(201)
    }
    const { hostname, port } = new URL(second.url)
    const withheld = await new Promise<number | undefined>((resolve, reject) => {
      const asked = request({ hostname, port, method: 'POST', headers: { 'content-length': 2_000_000 } })
      asked.once('response', (incoming) => {
        resolve(incoming.statusCode)
        asked.destroy()
      })
      asked.once('error', reject)
      asked.flushHeaders()
    })
    expect(withheld).toBe(413)
  })

  it('lets a client say nothing about its address', async () => {
    first.front.serve(echo, always)
    second.front.passTo(first.front.address)
    const answer = await fetch(second.url, { headers: { 'x-forwarded-for': '203.0.113.9' } })
    expect(await answer.json()).toMatchObject({ address: '127.0.0.1' })
  })

  it('passes nothing on that was passed on already', async () => {
    const { hostname, port } = new URL(second.url)
    second.front.passTo(`${hostname}:${port}`)
    expect((await fetch(second.url)).status).toBe(503)
  })

  it('answers itself what is about itself', async () => {
    expect(await (await fetch(`${second.url}/health/live`)).text()).toBe('alive')
    expect(await second.front.isOpen()).toBe(true)
  })

  it('answers nothing itself while its options are others than those of the node that serves', async () => {
    first.front.serve(echo, always)
    void second.front.readHere({
      isAnywhere: () => true,
      isSlidingSync: () => false,
      takeSync: () => false,
      servedBy() {},
      enter: () => false,
      isBatched: () => false,
      inBatch: async () => undefined,
      routing: (_request, response) => void response.end('read here'),
    })
    const ask = async () => (await (await fetch(`${second.url}/one`)).text()).slice(0, 9)
    second.front.passTo(first.front.address)
    expect(await ask()).toBe('read here')
    second.front.passTo(first.front.address, false)
    expect(await ask()).toBe('{"method"')
    second.front.passTo(first.front.address, true)
    expect(await ask()).toBe('read here')
  })

  it('is open while the node that serves is slow to say that it is ready', async () => {
    first.front.serve(() => {}, always)
    second.front.passTo(first.front.address)
    const health = createHealth()
    health.watch(second.front.isOpen)
    health.enter('standing by')
    expect(await health.whyNotReady()).toBeUndefined()
  })

  it('has a request wait until some node serves, and until it serves itself', async () => {
    const waiting = fetch(`${second.url}/one`)
    second.front.passTo(first.front.address)
    const also = fetch(`${first.url}/two`, { method: 'POST', body: 'once' })
    first.front.serve(echo, always)
    expect(await (await waiting).json()).toMatchObject({ url: '/one' })
    expect(await (await also).json()).toMatchObject({ url: '/two', body: 'once' })
  })

  it('has a request with a long body wait for a node that is about to serve, and sends it none before', async () => {
    second.front.passTo(first.front.address)
    let asked = 0
    for (const event of ['request', 'checkContinue']) first.front.server.on(event, () => asked++)
    const body = 'x'.repeat(300_000)
    const waiting = fetch(`${second.url}/long`, { method: 'POST', body })
    await waitUntil('a try, and looks', () => asked > 2)
    first.front.serve(echo, always)
    const answer = await waiting
    expect(answer.status).toBe(201)
    expect(await answer.json()).toMatchObject({ url: '/long', body })
  })

  it('sends nothing that cannot be sent again to a node that is about to end', async () => {
    second.front.passTo(first.front.address)
    const posted: string[] = []
    first.front.server.prependListener('request', ({ method, socket }) => {
      // As it ends: what comes on a connection is lost with it.
      if (method === 'POST' && posted.push(method) > 1) socket.destroy()
    })
    const waiting = fetch(`${second.url}/once`, { method: 'POST', body: 'x' })
    await waitUntil('a first try', () => posted.length > 0)
    let looks = 0
    first.front.server.on('request', () => looks++)
    await waitUntil('some looks', () => looks > 3)
    second.front.serve(echo, always)
    expect((await waiting).status).toBe(201)
    expect(posted).toEqual(['POST'])
  })

  it('goes to another node when the first one is gone', async () => {
    first.front.serve(echo, always)
    second.front.passTo(first.front.address)
    await (await fetch(second.url)).text()
    first.front.server.close()
    first.front.server.closeAllConnections()
    const waiting = fetch(`${second.url}/late`, { method: 'PUT', body: 'kept' })
    second.front.serve(echo, always)
    expect(await (await waiting).json()).toMatchObject({ url: '/late', body: 'kept' })
  })

  it('repeats nothing that may have been done, unless it may be done twice', async () => {
    const seen: string[] = []
    first.front.serve((request, response) => {
      seen.push(`${request.method}`)
      request.resume()
      if (seen.length < 3) request.on('end', () => response.destroy())
      else echo(request, response)
    }, always)
    second.front.passTo(first.front.address)
    const posted = await fetch(second.url, { method: 'POST', body: 'x' })
    expect(posted.status).toBe(503)
    expect(await posted.json()).toMatchObject({ errcode: 'M_UNKNOWN', retry_after_ms: 2_000 })
    expect((await fetch(second.url, { method: 'PUT', body: 'x' })).status).toBe(201)
    expect(seen).toEqual(['POST', 'PUT', 'PUT'])
  })

  it('takes back what a node has that answers no more, once it serves itself', async () => {
    let isThere = 0
    first.front.serve(() => {
      isThere++
    }, always)
    second.front.passTo(first.front.address)
    const asked = fetch(`${second.url}/one`, { method: 'PUT', body: 'x' })
    const once = fetch(`${second.url}/two`, { method: 'POST', body: 'x' })
    await waitUntil('both requests', () => isThere === 2)
    second.front.serve(echo, always)
    expect(await (await asked).json()).toMatchObject({ url: '/one', body: 'x' })
    expect((await once).status).toBe(503)
  })

  it('gets nothing from a node that has lost its place', async () => {
    let isHeld = false
    first.front.serve(echo, () => isHeld)
    second.front.passTo(first.front.address)
    const asked = [fetch(`${second.url}/one`, { method: 'POST', body: 'x' }), fetch(`${first.url}/two`)]
    expect(await Promise.race([...asked, new Promise((resolve) => setTimeout(resolve, 200, 'waiting'))])).toBe(
      'waiting',
    )
    isHeld = true
    for (const one of asked) expect((await one).status).toBe(201)
  })

  it('ends all that a client that is gone had sent on one connection, also what is answered behind a request that waits', async () => {
    let began = 0
    let ended = 0
    first.front.serve((request, response) => {
      began++
      response.on('close', () => {
        ended++
      })
      // More than waits for its turn in memory.
      if (request.url === '/answered') response.end(Buffer.alloc(8 * 1024 * 1024))
    }, always)
    connections().bound(second.clients, true)
    second.front.passTo(first.front.address)
    const { send, socket } = openRequest(second.url, 'GET /waits HTTP/1.1')
    for (const path of ['answered', 'also']) send(`PUT /${path} HTTP/1.1\r\nhost: hs\r\ncontent-length: 2\r\n\r\n{}`)
    await waitUntil('all of them', () => began === 3)
    expect(ended).toBe(0)
    socket.destroy()
    await waitUntil('their end', () => ended === 3)
  })
})

describe('a node that stops', () => {
  /** Answers what does not wait. */
  const patient: RequestListener = (request, response) => {
    void text(request).then((body) => {
      if (/timeout=0/.test(request.url ?? '') || JSON.parse(body || '{}').timeout === 0) response.end('no news')
    })
  }

  it('answers what it has begun, and has the rest wait for the next one', async () => {
    const held: (() => void)[] = []
    first.front.serve((_request, response) => void held.push(() => response.end('from the first')), always)
    second.front.passTo(first.front.address)
    const begun = [fetch(first.url, { method: 'POST' }), fetch(second.url, { method: 'POST' })]
    await waitUntil('both requests', () => held.length === 2)
    let isOver = false
    const over = first.front.retire().then(() => {
      isOver = true
    })
    const later = [fetch(`${first.url}/a`, { method: 'POST' }), fetch(`${second.url}/b`, { method: 'POST' })]
    for (const answerIt of held) {
      expect(isOver).toBe(false)
      answerIt()
    }
    for (const one of begun) expect(await (await one).text()).toBe('from the first')
    await over
    second.front.serve(echo, always)
    first.front.passTo(second.front.address)
    expect(await Promise.all(later.map(async (one) => ((await (await one).json()) as { url: string }).url))).toEqual([
      '/a',
      '/b',
    ])
    expect(held).toHaveLength(2)
  })

  it('asks again for what waits for news, without waiting, and repeats nothing else', async () => {
    let came = 0
    first.front.serve((request, response) => {
      came++
      patient(request, response)
    }, always)
    second.front.passTo(first.front.address)
    const json = { method: 'POST', body: '{"timeout": 30000, "lists": {}}' }
    const syncs = [fetch(`${second.url}/v3/sync?since=a&timeout=30000&x=y`), fetch(`${second.url}/v4/sync?pos=b`, json)]
    const other = fetch(`${second.url}/other?timeout=30000`, { method: 'POST', body: '{}' })
    await waitUntil('all requests', () => came === 3)
    second.front.finish()
    for (const sync of syncs) expect(await (await sync).text()).toBe('no news')
    second.front.close()
    expect((await other).status).toBe(503)
    expect(came).toBe(5)
  })

  it('refuses what waits for a node when none will come', async () => {
    const waiting = fetch(second.url)
    second.front.finish()
    expect((await waiting).status).toBe(503)
  })
})

describe('the listener for nodes', () => {
  const ask = (headers: Record<string, string>, path = '/x') =>
    fetch(`http://${first.front.address}${path}`, { headers }).then(({ status }) => status)
  const proofOf = (secret: string, url = '/x', now = Date.now()) =>
    nodeProof(secret, { method: 'GET', url, forwardedFor: '', authorization: '' }, now)

  it('refuses everybody without a proof of the secret for this very request, of this moment', async () => {
    first.front.serve(echo, always)
    expect(await ask({ 'x-hearth-node': proofOf(SECRET) })).toBe(201)
    expect(await ask({})).toBe(403)
    expect(await ask({ 'x-hearth-node': 'nonsense' })).toBe(403)
    expect(await ask({ 'x-hearth-node': proofOf('a guess') })).toBe(403)
    expect(await ask({ 'x-hearth-node': proofOf(SECRET) }, '/y')).toBe(403)
    expect(await ask({ 'x-hearth-node': proofOf(SECRET), 'x-forwarded-for': '203.0.113.9' })).toBe(403)
    expect(await ask({ 'x-hearth-node': proofOf(SECRET), authorization: 'Bearer other' })).toBe(403)
    expect(await ask({ 'x-hearth-node': proofOf(SECRET, '/x', Date.now() - 600_000) })).toBe(403)
    expect(await ask({ 'x-hearth-node': proofOf(SECRET, '/x', Date.now() + 600_000) })).toBe(403)
  })

  it('a node with another secret gets nothing done', async () => {
    const stranger = await openNode('the secret of somebody else entirely')
    const seen: string[] = []
    first.front.serve((request, response) => {
      seen.push(`${request.url}`)
      response.end()
    }, always)
    stranger.front.passTo(first.front.address)
    expect((await fetch(stranger.url)).status).toBe(403)
    expect(seen).toEqual([])
  })
})
