import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ProtocolError } from '../../../src/core/errors.ts'
import type { UserId } from '../../../src/core/ids.ts'
import { Type } from '../../../src/core/shapes.ts'
import type { Requester } from '../../../src/domain/accounts/requester.ts'
import { createMetrics, type Metrics } from '../../../src/domain/metrics.ts'
import type { Services } from '../../../src/domain/services.ts'
import type { Tracing } from '../../../src/domain/tracing.ts'
import { createBodyIntake } from '../../../src/http/body-intake.ts'
import { addressReader } from '../../../src/http/client-address.ts'
import { createCompression } from '../../../src/http/compression.ts'
import { AnyObject, endpoint, rawReply } from '../../../src/http/endpoint.ts'
import { apiOf, mountApis } from '../../../src/http/mount.ts'
import { type BatchDesk, createBatchDesk } from '../../../src/http/nodes/batch-desk.ts'
import { CLIENT_CODES, type Role } from '../../../src/http/role.ts'
import { createServer } from '../../../src/http/server.ts'

/** What a request is answered that came in a batch must be what it is answered over HTTP. */

const log = pino({ level: 'silent' })
const people: Record<string, Requester> = {
  alice: { userId: '@alice:hs' as UserId, userNid: 1, deviceId: 'A', tokenNid: 7, isGuest: false },
  guest: { userId: '@guest:hs' as UserId, userNid: 2, deviceId: 'G', tokenNid: 8, isGuest: true },
}
const MAX_BODY_BYTES = 200
const seen: string[] = []
let limited = 0

const endpoints = [
  endpoint(
    'PUT C/rooms/{roomId}/send/{eventType}/{txnId}',
    { auth: 'user', batched: true, body: AnyObject },
    ({ params, path, dialect, isOldPath, exactBody, bodyOffence, requester, ip, userAgent }) => ({
      params,
      path,
      dialect,
      isOldPath,
      body: exactBody,
      offence: bodyOffence ?? null,
      token: requester.tokenNid,
      ip,
      userAgent,
    }),
  ),
  endpoint(
    'POST C/typed',
    {
      auth: 'user',
      guests: true,
      limited: 'other',
      batched: true,
      bodyOptional: true,
      also: ['CU/org.test/typed'],
      body: Type.Object({ n: Type.Optional(Type.Integer()) }),
    },
    async ({ body }) => {
      if (body.n === 1) throw new ProtocolError('M_FORBIDDEN', 'Not one.')
      if (body.n === 2) throw new Error('a mistake')
      if (body.n === 3)
        throw new ProtocolError('M_LIMIT_EXCEEDED', 'Slowly.', { status: 429, extra: { retry_after_ms: 2_500 } })
      return { n: body.n ?? null }
    },
  ),
  endpoint('PUT C/raw', { auth: 'user', batched: true, body: AnyObject }, () => rawReply({ body: '{}' })),
  endpoint('PUT C/other', { auth: 'user', body: AnyObject }, () => ({})),
]

const role: Role<Requester> = {
  codes: CLIENT_CODES,
  maxBodyBytes: MAX_BODY_BYTES,
  // Some sessions have to be looked up.
  authenticate: (token) => (token === 'alice' ? people[token] : Promise.resolve(people[token])),
  seen: ({ userId }, ip, userAgent) => void seen.push(`${userId} ${ip()} ${userAgent}`),
}

let metrics: Metrics
let desk: BatchDesk
let app: FastifyInstance

beforeAll(async () => {
  metrics = createMetrics({ version: '0', node: '' })
  const addressOf = addressReader([])
  const intake = createBodyIntake({ addressOf, longest: 1_000_000, metrics: metrics.arrivals, log })
  let ids = 0
  desk = createBatchDesk({ log, metrics, nextId: () => `batch-${++ids}` })
  app = createServer({ log, metrics, intake })
  const rateLimits = {
    take() {
      limited += 1
    },
    takeAhead: () => 0,
  }
  const services = { rateLimits } as unknown as Services
  const deps = { services, log, addressOf, intake, compression: createCompression(addressOf), batched: desk.add }
  const api = apiOf(
    () => endpoints,
    () => role,
  )
  mountApis(app, [api], deps)
  await app.ready()
})
afterAll(() => app.close())

interface Asked {
  readonly method?: 'PUT' | 'POST'
  readonly url: string
  readonly token?: string
  readonly body?: string | Buffer
}

const IP = '192.0.2.7'
const AGENT = 'a client'

const inBatch = ({ method = 'PUT', url, token = 'alice', body = '{}' }: Asked) =>
  desk.answer({ method, url, token, ip: IP, userAgent: AGENT, body: Buffer.from(body) })

async function overHttp({ method = 'PUT', url, token = 'alice', body = '{}' }: Asked) {
  const headers = { authorization: `Bearer ${token}`, 'user-agent': AGENT, 'content-type': 'application/json' }
  return app.inject({ method, url, headers, payload: body, remoteAddress: IP })
}

/** Ids of requests differ. */
const plain = (text: string) => text.replace(/request [\w-]+/, 'request')

const send = '/_matrix/client/v3/rooms/!r%3Ahs/send'
const typed = '/_matrix/client/v3/typed'

const CASES: Readonly<Record<string, Asked>> = {
  'a message': { url: `${send}/m.room.message/t1`, body: '{"body":"hé","n":1}' },
  'a message by the old path': { url: '/_matrix/client/r0/rooms/!r:hs/send/m.room.message/t1' },
  'a message in the other dialect': { url: '/_proto/client/v3/rooms/!r:hs/send/m.room.message/t1' },
  'what a path may hold': { url: `${send}/a%2Fb%252F%20c/%E2%98%95+d` },
  'numbers that are not exact': { url: `${send}/m.x/t`, body: '{"n":123456789012345678901234567890}' },
  'a room id that is none': { url: '/_matrix/client/v3/rooms/r/send/m.x/t' },
  'a NUL': { url: `${send}/m.x/t%00` },
  'no JSON': { url: `${send}/m.x/t`, body: 'nothing' },
  'no text': { url: `${send}/m.x/t`, body: Buffer.from([0x22, 0xff, 0x22]) },
  'no object': { url: `${send}/m.x/t`, body: '[]' },
  'no body': { url: `${send}/m.x/t`, body: '' },
  'no session': { url: `${send}/m.x/t`, token: 'nobody' },
  'a guest': { url: `${send}/m.x/t`, token: 'guest' },
  'a guest who may': { method: 'POST', url: typed, token: 'guest' },
  'an empty body where it may be': { method: 'POST', url: typed, body: '' },
  'another path of the same': { method: 'POST', url: '/_matrix/client/unstable/org.test/typed', body: '{"n":7}' },
  'a wrong type': { method: 'POST', url: typed, body: '{"n":"x"}' },
  'a refusal': { method: 'POST', url: typed, body: '{"n":1}' },
  'a mistake of ours': { method: 'POST', url: typed, body: '{"n":2}' },
  'a limit': { method: 'POST', url: typed, body: '{"n":3}' },
}

describe('a request in a batch', () => {
  it.each(Object.entries(CASES))('is answered as over HTTP: %s', async (_, asked) => {
    const [expected, answer] = [await overHttp(asked), await inBatch(asked)]
    expect({ status: answer!.status, body: plain(answer!.body) }).toEqual({
      status: expected.statusCode,
      body: plain(expected.body),
    })
    expect(answer!.headers['retry-after']).toBe(expected.headers['retry-after'])
    expect(answer!.headers['x-request-id']).toMatch(/^batch-/)
    // Nothing else says more than what every answer has.
    expect(Object.keys(answer!.headers).filter((name) => name !== 'retry-after')).toEqual(['x-request-id'])
  })

  it('sees who the client is, and where', async () => {
    seen.length = 0
    const answer = await inBatch(CASES['a message']!)
    expect(JSON.parse(answer!.body)).toMatchObject({ ip: IP, userAgent: AGENT, token: 7, params: { txnId: 't1' } })
    expect(seen).toEqual([`@alice:hs ${IP} ${AGENT}`])
  })

  it('counts for limits and metrics once', async () => {
    const line = /^synapse_http_server_requests_received\{method="POST",servlet="C\/typed",code="200"\} (\d+)$/m
    const count = async () => Number(line.exec(await metrics.text())?.[1] ?? 0)
    const before = await count()
    limited = 0
    await inBatch({ method: 'POST', url: typed })
    expect([limited, (await count()) - before]).toEqual([1, 1])
  })

  it('is passed on whole if it is for another operation, is longer than it may be, or has no usual path', async () => {
    const whole: readonly Asked[] = [
      { url: '/_matrix/client/v3/other' },
      { method: 'POST', url: `${send}/m.x/t` },
      { url: `${send}/m.x/t/` },
      { url: `${send}/m.x/t?ts=1` },
      { url: `${send}/m.x/t#x` },
      { url: `${send}/m.x/%E0%A4%A` },
      { url: `${send}/m.x/` },
      { url: `${send}/m.x/t`, body: JSON.stringify({ long: 'x'.repeat(MAX_BODY_BYTES) }) },
    ]
    for (const asked of whole) expect({ asked, answer: await inBatch(asked) }).toEqual({ asked, answer: undefined })
  })

  it('is an error where the operation gives something else than JSON', async () => {
    expect((await inBatch({ url: '/_matrix/client/v3/raw' }))?.status).toBe(500)
  })

  it('has a span of its own', async () => {
    const spans: unknown[] = []
    const tracing = {
      begin: () => ({
        within: (next: () => void) => next(),
        end: (...answered: unknown[]) => void spans.push(answered),
      }),
    } as unknown as Tracing
    const traced = createBatchDesk({ log, metrics, tracing, nextId: () => 'id' })
    traced.add({
      endpoint: endpoints[0]!,
      headers: { 'x-role': 'kept' },
      maxBodyBytes: 10,
      enter: () => undefined,
      answererIn: () => () => ({}),
    })
    const answer = await traced.answer({
      method: 'PUT',
      url: `${send}/m.x/t`,
      token: 'alice',
      ip: IP,
      userAgent: undefined,
      body: Buffer.from('{}'),
    })
    expect(answer).toEqual({ status: 200, headers: { 'x-role': 'kept', 'x-request-id': 'id' }, body: '{}' })
    expect(spans).toEqual([['PUT', 'C/rooms/{roomId}/send/{eventType}/{txnId}', 200]])
  })
})
