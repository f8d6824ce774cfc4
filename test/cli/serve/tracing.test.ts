import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RunningTracing, startTracing } from '../../../src/cli/serve/tracing.ts'
import { createRoom, type Json, join, sendText } from '../../support/api.ts'
import { type Neighbourhood, openNeighbourhood } from '../../support/neighbours.ts'
import { SOURCES } from '../../support/sources.ts'
import { waitUntil } from '../../support/wait.ts'

/** A collector: it takes what is sent by OTLP over HTTP, as JSON. */
let collector: Server
let received: { readonly path: string | undefined; readonly authorization: string | undefined; readonly body: Json }[]
let tracing: RunningTracing
let neighbourhood: Neighbourhood
/** What must not be in any span. */
let secrets: string[]

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly attributes: { readonly key: string; readonly value: Json }[]
}
const spans = (): Span[] =>
  received.flatMap(({ body }) =>
    body.resourceSpans.flatMap((one: Json) => one.scopeSpans.flatMap(({ spans: some }: Json) => some)),
  )
const attributesOf = ({ attributes }: Span) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]))

beforeAll(async () => {
  received = []
  collector = createServer(async (request, response) => {
    received.push({ path: request.url, authorization: request.headers.authorization, body: await json(request) })
    response.setHeader('content-type', 'application/json').end('{}')
  })
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  const { port } = collector.address() as AddressInfo
  const wanted = { otlp_endpoint: `http://127.0.0.1:${port}/`, authorization: 'Bearer collector', sample_ratio: 1 }
  tracing = (await startTracing(wanted, { version: '1.2.3', log: pino({ level: 'silent' }) }))!
  neighbourhood = openNeighbourhood({ tracing })
  const [here, there] = await Promise.all([neighbourhood.open(), neighbourhood.open()])
  const [alice, bob] = await Promise.all([here.person('alice-canary'), there.person('bob-canary')])
  const room = await createRoom(here.api, alice.token, { preset: 'public_chat', invite: [bob.userId] })
  await join(there.api, bob.token, room)
  await sendText(here.api, alice.token, room, 'txn-canary', 'text-canary')
  const seen = async () => {
    const { rooms } = await there.api.call('GET', '/sync', { token: bob.token })
    return JSON.stringify(rooms).includes('text-canary')
  }
  await waitUntil('the message at the other server', seen)
  secrets = [alice.token, bob.token, alice.userId, bob.userId, room, here.name, there.name, 'canary']
  await tracing.close()
})
afterAll(async () => {
  await neighbourhood?.close()
  collector?.close()
})

test('a request is a span by its operation, and what it asks of the database are children of it', () => {
  expect(received[0]).toMatchObject({ path: '/v1/traces', authorization: 'Bearer collector' })
  const resource = Object.fromEntries(
    received[0]!.body.resourceSpans[0].resource.attributes.map(({ key, value }: Json) => [key, value.stringValue]),
  )
  expect(resource).toEqual({ 'service.name': 'hearth', 'service.version': '1.2.3' })
  const send = spans().find(({ name }) => name === 'PUT C/rooms/{roomId}/send/{eventType}/{txnId}')
  expect(attributesOf(send!)).toEqual({
    'http.request.method': 'PUT',
    'http.route': 'C/rooms/{roomId}/send/{eventType}/{txnId}',
    'http.response.status_code': 200,
  })
  expect(send!.parentSpanId ?? '').toBe('')
  const join = spans().find(({ name }) => /^POST C\/(?:rooms\/\{roomId\}\/join|join\/)/.test(name))!
  const children = spans().filter(({ traceId, spanId }) => traceId === join.traceId && spanId !== join.spanId)
  expect(children.length).toBeGreaterThan(3)
  expect(children.some(({ name }) => /^SELECT \(read\)$/.test(name))).toBe(true)
  expect(children.some(({ parentSpanId }) => parentSpanId === join.spanId)).toBe(true)
})

test('statements are told apart by kind and connection; a transaction has its statements in it', () => {
  const transaction = spans().find(
    ({ name, spanId }) => name === 'transaction' && spans().some(({ parentSpanId }) => parentSpanId === spanId),
  )
  expect(transaction).toBeDefined()
  const kinds = new Set(spans().map(({ name }) => name))
  for (const kind of ['SELECT (read)', 'federation send']) expect([...kinds]).toContain(kind)
  expect([...kinds].some((name) => /\(writer\)$/.test(name))).toBe(true)
})

test('nothing in a span is of somebody, and what can be in one is bounded', () => {
  const text = JSON.stringify(received.map(({ body }) => body))
  for (const secret of secrets) expect(text, secret).not.toContain(secret)
  expect(new Set(spans().map(({ name }) => name)).size).toBeLessThan(200)
  const keys = new Set(spans().flatMap(({ attributes }) => attributes.map(({ key }) => key)))
  expect([...keys].sort()).toEqual([
    'db.operation.name',
    'db.system.name',
    'hearth.connection',
    'http.request.method',
    'http.response.status_code',
    'http.route',
  ])
})

test('without an address there is no tracing, and nothing else in the source names its packages', async () => {
  expect(await startTracing({ sample_ratio: 1 }, { version: '', log: pino({ level: 'silent' }) })).toBeUndefined()
  const naming = SOURCES.filter(({ text }) => text.includes('@opentelemetry'))
  expect(naming.map(({ name }) => name)).toEqual(['cli/serve/tracing.ts'])
  expect(naming[0]!.text).not.toMatch(/^import .*@opentelemetry/m)
})

test('a collector that is away holds nothing up', async () => {
  const log = pino({ level: 'silent' })
  const away = await startTracing({ otlp_endpoint: 'http://127.0.0.1:1', sample_ratio: 1 }, { version: '', log })
  expect(await away!.run('x', {}, async () => 7)).toBe(7)
  await expect(away!.run('x', {}, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
  const begun = performance.now()
  await away!.close()
  expect(performance.now() - begun).toBeLessThan(9_000)
})
