import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newAccessToken } from '../../../src/domain/accounts/access-tokens.ts'
import {
  MAX_BATCHED_BODY_BYTES,
  MAX_BATCHED_BYTES_IN_ALL,
  MAX_BATCHED_BYTES_UNDER_WAY,
  MAX_BATCHED_HEAD_CHARS,
  MAX_BATCHED_IN_ALL,
  MAX_BATCHED_UNDER_WAY,
} from '../../../src/domain/limits/cluster.ts'
import { createMetrics } from '../../../src/domain/metrics.ts'
import type { SyncDesk } from '../../../src/domain/standby/sync-desk.ts'
import { addressReader } from '../../../src/http/client-address.ts'
import { createConnections } from '../../../src/http/connections.ts'
import type { BatchDesk } from '../../../src/http/nodes/batch-desk.ts'
import { type BatchedAnswer, type BatchedRequest, DueRequests } from '../../../src/http/nodes/batched.ts'
import { createBatchesIn } from '../../../src/http/nodes/batches-in.ts'
import { BatchesOut } from '../../../src/http/nodes/batches-out.ts'
import { createBatchingHere } from '../../../src/http/nodes/batching-here.ts'
import { type Front, openFront } from '../../../src/http/nodes/front.ts'
import { FrameReader } from '../../../src/http/nodes/news-frames.ts'
import { createNewsStream, type NewsStream } from '../../../src/http/nodes/news-stream.ts'
import { batchedEndpoints } from '../../../src/routes/client/standby.ts'
import { type Cuttable, startCuttable } from '../../support/cuttable.ts'
import { waitUntil } from '../../support/wait.ts'

/** How requests travel in batches over a real connection between two nodes, and what becomes of them when it ends. */

const SECRET = 'the secret of the nodes of this test'
const log = pino({ level: 'silent' })
const syncs: SyncDesk = {
  look: async () => undefined,
  position: () => 's1',
  isGoingOn: async () => false,
  follow: () => () => {},
}

const requestOf = (url: string, body = '{}'): BatchedRequest => ({
  method: 'PUT',
  url,
  token: 'a token',
  ip: '192.0.2.7',
  userAgent: undefined,
  body: Buffer.from(body),
})
const answerOf = ({ url, body }: BatchedRequest): BatchedAnswer => ({
  status: 201,
  headers: { 'x-request-id': url },
  body: JSON.stringify({ url, body: body.toString() }),
})

describe('requests between two nodes', () => {
  let front: Front
  let line: Cuttable
  let news: NewsStream
  let isHeld: boolean
  /** What came to the node that serves, in order. */
  let came: string[]
  let answer: BatchDesk['answer']

  const connections = () =>
    createConnections(
      { inAll: 100, perAddress: 100, trustedProxies: [] },
      { metrics: createMetrics({ version: '0', node: '' }).arrivals, log },
    )

  const connected = () => waitUntil('its connection', () => news.takesBatches())

  /** Requests that the other node has begun to answer, and never does. */
  async function underWay(count: number): Promise<Promise<BatchedAnswer | undefined>[]> {
    answer = () => new Promise(() => {})
    const asked = Array.from({ length: count }, (_, n) => news.inBatch(requestOf(`/${n}`)))
    await waitUntil('all of them', () => came.length === count)
    return asked
  }

  beforeEach(async () => {
    isHeld = true
    came = []
    answer = async (request) => answerOf(request)
    front = await openFront({
      secret: SECRET,
      host: '127.0.0.1',
      port: 0,
      connections: connections(),
      now: Date.now,
      log,
      answersItself: () => false,
    })
    const desk: BatchDesk = {
      add() {},
      answer(request) {
        came.push(request.url)
        return answer(request)
      },
    }
    front.serve(
      (_request, response) => void response.end(),
      () => isHeld,
      syncs,
      desk,
    )
    line = await startCuttable({ host: '127.0.0.1', port: Number(front.address.split(':')[1]) })
    news = createNewsStream({
      secret: SECRET,
      now: Date.now,
      listener: { began() {}, woken() {}, lost() {} },
    })
    news.servedBy(`127.0.0.1:${line.port}`)
    await connected()
  })
  afterEach(async () => {
    news.close()
    front.close()
    front.server.close()
    front.server.closeAllConnections()
    await line.close()
  })

  it('come as they were sent, in their order, and their answers go back', async () => {
    const asked = Array.from({ length: 500 }, (_, n) => requestOf(`/${n}`, `${n} é`.repeat(n)))
    const answers = await Promise.all(asked.map(news.inBatch))
    expect(answers).toEqual(asked.map(answerOf))
    expect(came).toEqual(asked.map(({ url }) => url))
  })

  it('need not be answered in their order', async () => {
    const late: (() => void)[] = []
    answer = (request) => new Promise((resolve) => late.push(() => resolve(answerOf(request))))
    const asked = ['/one', '/two', '/three'].map((url) => news.inBatch(requestOf(url)))
    await waitUntil('all of them', () => late.length === 3)
    for (const [at, n] of [1, 2, 0].entries()) {
      late[n]!()
      expect({ at, answer: (await asked[n])?.status }).toEqual({ at, answer: 201 })
    }
  })

  it('are passed on whole if the other node says so, also because of a mistake', async () => {
    answer = async () => undefined
    expect(await news.inBatch(requestOf('/one'))).toBe(undefined)
    answer = () => Promise.reject(new Error('a mistake'))
    expect(await news.inBatch(requestOf('/two'))).toBe(undefined)
    answer = async (request) => answerOf(request)
    expect((await news.inBatch(requestOf('/three')))?.status).toBe(201)
  })

  const ENDS: readonly (readonly [string, () => void])[] = [
    ['the other one serves no more', () => void front.retire()],
    ['the other one has lost its place', () => (isHeld = false)],
    ['another one serves', () => news.servedBy('127.0.0.1:1')],
    ['none serves', () => news.servedBy(undefined)],
    ['this one stops', () => news.close()],
  ]
  it.each(ENDS)('are passed on whole when %s', async (_, end) => {
    const asked = await underWay(3)
    end()
    expect(await Promise.all(asked)).toEqual([undefined, undefined, undefined])
    await waitUntil('nothing is taken', () => !news.takesBatches())
    expect(await news.inBatch(requestOf('/later'))).toBe(undefined)
  })

  it('are begun by no node that has lost its place', async () => {
    isHeld = false
    expect(await news.inBatch(requestOf('/one'))).toBe(undefined)
    expect(came).toEqual([])
  })

  it('are waited for by a node that gives its place back', async () => {
    const late: (() => void)[] = []
    answer = (request) => new Promise((resolve) => late.push(() => resolve(answerOf(request))))
    const asked = news.inBatch(requestOf('/one'))
    await waitUntil('the request', () => late.length === 1)
    expect(front.begun()).toBe(1)
    let isOver = false
    const over = front.retire().then(() => {
      isOver = true
    })
    expect(await asked).toBe(undefined)
    expect(isOver).toBe(false)
    late[0]!()
    await over
    expect(front.begun()).toBe(0)
  })

  it('go on when the line is mended', async () => {
    const asked = await underWay(1)
    line.cut()
    expect(await asked[0]).toBe(undefined)
    line.mend()
    answer = async (request) => answerOf(request)
    await connected()
    expect((await news.inBatch(requestOf('/again')))?.status).toBe(201)
  })

  it('go whole to a release that knows no batches', async () => {
    front.serve(
      (_request, response) => void response.end(),
      () => true,
      { ...syncs, follow: () => () => {} },
    )
    let began = 0
    const other = createNewsStream({
      secret: SECRET,
      now: Date.now,
      listener: { began: () => void began++, woken() {}, lost() {} },
    })
    other.servedBy(front.address)
    await waitUntil('its connection', () => began === 1)
    expect(other.takesBatches()).toBe(false)
    expect(await other.inBatch(requestOf('/one'))).toBe(undefined)
    other.close()
  })
})

describe('how many are under way', () => {
  it('is bounded where they are passed on, in number and bytes', async () => {
    const out = () =>
      new BatchesOut(
        () => {},
        () => false,
      )
    const many = out()
    const asked = Array.from({ length: MAX_BATCHED_UNDER_WAY }, () => many.send(requestOf('/one')))
    expect(await many.send(requestOf('/more'))).toBe(undefined)
    many.answered(JSON.stringify([[1, 200, {}, '{}']]))
    expect((await asked[0])?.body).toBe('{}')
    const again = many.send(requestOf('/again'))
    many.end()
    expect(await again).toBe(undefined)

    const long = out()
    const body = 'x'.repeat(MAX_BATCHED_BODY_BYTES)
    const fitting = Math.floor(MAX_BATCHED_BYTES_UNDER_WAY / (MAX_BATCHED_BODY_BYTES + 1_000))
    for (let n = 0; n < fitting; n++) void long.send(requestOf('/one', body))
    const refused = Array.from({ length: 100 }, () => long.send(requestOf('/more', body)))
    expect(await Promise.race(refused)).toBe(undefined)
    long.end()

    const full = new BatchesOut(
      () => {},
      () => true,
    )
    expect(await full.send(requestOf('/one'))).toBe(undefined)
  })

  it('is bounded where they are answered, of all nodes together', () => {
    const late: (() => void)[] = []
    let begun = 0
    const answered: [number, unknown][] = []
    const batches = createBatchesIn({
      desk: { answer: (request) => new Promise((resolve) => late.push(() => resolve(answerOf(request)))) },
      log,
      isHeld: () => true,
      begin() {
        begun += 1
        return () => void begun--
      },
    })
    const take = (count: number, body: string) => {
      const due = new DueRequests()
      for (let n = 0; n < count; n++) due.add(n, requestOf('/one', body))
      for (const bytes of due.take())
        for (const { head, body: bodies } of new FrameReader().read(bytes))
          batches.take(head, bodies, (id, answer) => void answered.push([id, answer]))
    }
    take(MAX_BATCHED_IN_ALL, '')
    expect([answered.length, begun]).toEqual([0, MAX_BATCHED_IN_ALL])
    take(2, '')
    expect(answered).toEqual([
      [0, undefined],
      [1, undefined],
    ])
    expect(begun).toBe(MAX_BATCHED_IN_ALL)
  })

  it('is bounded there in bytes too, and what is answered makes room', async () => {
    const late: (() => void)[] = []
    const refused: number[] = []
    const batches = createBatchesIn({
      desk: { answer: (request) => new Promise((resolve) => late.push(() => resolve(answerOf(request)))) },
      log,
      isHeld: () => true,
      begin: () => () => {},
    })
    const body = 'x'.repeat(MAX_BATCHED_BODY_BYTES)
    const one = new DueRequests()
    one.add(1, requestOf('/one', body))
    const [frame] = new FrameReader().read(one.take()[0]!)
    const take = () =>
      batches.take(frame!.head, frame!.body, (id, answer) => void (answer === undefined && refused.push(id)))
    const fitting = Math.floor(MAX_BATCHED_BYTES_IN_ALL / MAX_BATCHED_BODY_BYTES)
    for (let n = 0; n < fitting + 1; n++) take()
    expect(refused.length).toBeGreaterThan(0)
    const [before, begun] = [refused.length, late.length]
    for (const answerIt of late.splice(0, 20)) answerIt()
    await new Promise((resolve) => setImmediate(resolve))
    take()
    expect([refused.length, late.length]).toEqual([before, begun - 20 + 1])
  })
})

describe('a request that may travel in a batch', () => {
  const token = newAccessToken({ bytes: (count) => Buffer.alloc(count, 7) })
  const USUAL = { authorization: `Bearer ${token}`, 'content-length': '2', 'content-type': 'application/json' }
  let takes = true
  const { isBatched } = createBatchingHere({
    endpoints: batchedEndpoints,
    news: { takesBatches: () => takes, inBatch: async () => undefined },
    addressOf: addressReader([]),
  })

  function is(method: string, url: string, headers: Record<string, string | undefined> = {}): boolean {
    const request = new IncomingMessage(new Socket())
    Object.assign(request, { method, url })
    for (const [name, value] of Object.entries({ ...USUAL, ...headers }))
      if (value !== undefined) request.headers[name] = value
    return isBatched(request)
  }

  const room = '/_matrix/client/v3/rooms/%21x%3Ay'

  it('is one of those that are sent often, and do no more when they are done twice', () => {
    const TARGETS: readonly (readonly [string, string])[] = [
      ['PUT', `${room}/send/m.room.message/txn`],
      ['PUT', `/_proto/client/r0/rooms/!x:y/send/m.room.message/txn`],
      ['PUT', `${room}/typing/@a:b`],
      ['POST', `${room}/receipt/m.read/$event`],
      ['POST', `${room}/read_markers`],
      ['PUT', '/_matrix/client/v3/sendToDevice/m.room.encrypted/txn'],
      ['PUT', '/_matrix/client/unstable/sendToDevice/m.room.encrypted/txn'],
    ]
    for (const [method, url] of TARGETS) expect({ url, is: is(method, url) }).toEqual({ url, is: true })
    expect(batchedEndpoints.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
      'POST C/rooms/{roomId}/read_markers',
      'POST C/rooms/{roomId}/receipt/{receiptType}/{eventId}',
      'PUT C/rooms/{roomId}/send/{eventType}/{txnId}',
      'PUT C/rooms/{roomId}/typing/{userId}',
      'PUT C/sendToDevice/{eventType}/{txnId}',
    ])
    for (const { path, options } of batchedEndpoints) {
      const { auth, uia, streamed, forms, recorded, anywhere } = options
      expect({ path, auth, uia, streamed, forms, recorded, anywhere }).toEqual({ path, auth: 'user' })
    }
  })

  it('is a usual one: short, with a token of ours, and without a query', () => {
    const url = `${room}/send/m.room.message/txn`
    const WHOLE: readonly Readonly<Record<string, string | undefined>>[] = [
      { authorization: undefined },
      { authorization: 'Bearer of_a_service' },
      { authorization: `Basic ${token}` },
      { 'content-length': undefined },
      { 'content-length': `${MAX_BATCHED_BODY_BYTES + 1}` },
      { 'content-length': undefined, 'transfer-encoding': 'chunked' },
      { expect: '100-continue' },
      { 'content-type': 'not a type' },
      { 'content-type': 'text/plain; x="y"' },
      { 'user-agent': 'x'.repeat(MAX_BATCHED_HEAD_CHARS) },
    ]
    for (const headers of WHOLE) expect({ headers, is: is('PUT', url, headers) }).toEqual({ headers, is: false })
    for (const target of ['?ts=1', '?org.matrix.msc4140.delay=9', '/', '#x', '/more', 'x'.repeat(2_048)])
      expect({ target, is: is('PUT', `${url}${target}`) }).toEqual({ target, is: false })
    for (const method of ['GET', 'POST', 'DELETE']) expect(is(method, url)).toBe(false)
    expect(is('PUT', `${room}/state/m.room.topic`)).toBe(false)
    for (const headers of [
      { 'content-length': '0' },
      { 'content-type': undefined },
      { 'content-type': 'application/json; charset=utf-8' },
      { 'content-type': 'text/plain;charset=UTF-8' },
      { authorization: `bearer  ${token} ` },
    ])
      expect({ headers, is: is('PUT', url, headers) }).toEqual({ headers, is: true })
    takes = false
    expect(is('PUT', url)).toBe(false)
    takes = true
  })
})
