import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_BATCHED_BODY_BYTES } from '../../src/domain/limits/cluster.ts'
import { NODE_PROOF } from '../../src/http/nodes/node-listener.ts'
import { type Account, type Api, createRoom, type Json, join, openApi, register } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'

/** What is sent often at a node that stands by reaches the node that serves without a request of HTTP, and is done as if there were one. */

let server: TestServer
/** The node that serves. */
let api: Api
let alice: Account
let bob: Account
let room: string
let count = 0
/** Paths of what was passed on whole. */
const whole: string[] = []

const enc = encodeURIComponent
/** More messages than one person sends here, but for one. */
const BURST = 100

const watch = (message: unknown): void => {
  const { request } = message as { readonly request: IncomingMessage }
  if (request.headers[NODE_PROOF] !== undefined) whole.push(request.url ?? '')
}

interface Sent {
  readonly by?: string | undefined
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

async function call(
  where: 'serving' | 'standby',
  method: string,
  path: string,
  { by = alice.token, body = {}, headers = {} }: Sent = {},
) {
  const base = where === 'serving' ? server.baseUrl : server.standbyUrl
  const answer = await fetch(`${base}/_matrix/client/v3${path}`, {
    method,
    headers: { authorization: `Bearer ${by}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Json }
}

/** @returns the answer, which came without a request of HTTP between the nodes */
async function batched(method: string, path: string, sent?: Sent) {
  const before = whole.length
  const answer = await call('standby', method, path, sent)
  expect({ path, whole: whole.slice(before) }).toEqual({ path, whole: [] })
  return answer
}

const messagePath = (txn: string) => `/rooms/${enc(room)}/send/m.room.message/${txn}`
const text = (body: string) => ({ msgtype: 'm.text', body })

async function bodiesFor({ token }: Account): Promise<string[]> {
  const { chunk } = await api.call('GET', `/rooms/${enc(room)}/messages?dir=f&limit=100`, { token })
  return chunk.flatMap(({ content }: Json) => content.body ?? [])
}

beforeAll(async () => {
  subscribe('http.server.request.start', watch)
  server = await startServer(
    {
      rate_limits: {
        enabled: true,
        registration: { per_second: 100, burst: 1_000 },
        message: { per_second: 0.01, burst: BURST },
      },
      registration: { enabled: 'auto' },
    },
    { hasStandby: true },
  )
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  bob = await register(api, 'bob')
  room = await createRoom(api, alice.token, { preset: 'public_chat' })
  await join(api, bob.token, room)
  await waitUntil('its connection', async () => {
    const before = whole.length
    await call('standby', 'PUT', `/rooms/${enc(room)}/typing/${enc(alice.userId)}`, { body: { typing: false } })
    return whole.length === before
  })
})
afterAll(async () => {
  unsubscribe('http.server.request.start', watch)
  await api.close()
  await server.close()
})

describe('what is sent often', () => {
  it('is a message, once for each transaction, whichever node got it', async () => {
    const [first, again] = [
      await batched('PUT', messagePath('one'), { body: text('hello') }),
      await batched('PUT', messagePath('one'), { body: text('hello') }),
    ]
    expect(first.status).toBe(200)
    expect(again.body).toEqual(first.body)
    expect((await call('serving', 'PUT', messagePath('one'), { body: text('hello') })).body).toEqual(first.body)
    expect(await bodiesFor(bob)).toEqual(['hello'])
  })

  it('keeps the order in which one connection sent it', async () => {
    const said = Array.from({ length: 20 }, (_, n) => `number ${n}`)
    for (const body of said) await batched('PUT', messagePath(`order${++count}`), { body: text(body) })
    expect((await bodiesFor(bob)).slice(-20)).toEqual(said)
  })

  it('is a receipt, a read marker, typing, and messages to devices', async () => {
    const { body } = await batched('PUT', messagePath(`read${++count}`), { body: text('read me') })
    const at = { by: bob.token }
    const since = (await api.call('GET', '/sync', { token: alice.token })).next_batch
    const receipt = await batched('POST', `/rooms/${enc(room)}/receipt/m.read/${enc(body.event_id)}`, at)
    const marker = await batched('POST', `/rooms/${enc(room)}/read_markers`, {
      ...at,
      body: { 'm.fully_read': body.event_id },
    })
    const typing = await batched('PUT', `/rooms/${enc(room)}/typing/${enc(bob.userId)}`, {
      ...at,
      body: { typing: true, timeout: 30_000 },
    })
    const toDevice = await batched('PUT', `/sendToDevice/org.test/d${++count}`, {
      ...at,
      body: { messages: { [alice.userId]: { '*': { n: 1 } } } },
    })
    for (const answer of [receipt, marker, typing, toDevice]) expect([answer.status, answer.body]).toEqual([200, {}])
    const news = await api.call('GET', `/sync?since=${since}&timeout=0`, { token: alice.token })
    expect(news.to_device.events.map(({ content }: Json) => content)).toEqual([{ n: 1 }])
    const ephemeral = news.rooms.join[room].ephemeral.events as Json[]
    expect(ephemeral.find(({ type }) => type === 'm.typing')?.content.user_ids).toEqual([bob.userId])
    const receipts = ephemeral.find(({ type }) => type === 'm.receipt')
    expect(Object.keys(receipts?.content[body.event_id]['m.read'])).toEqual([bob.userId])
  })

  it('counts once, and where it is done', async () => {
    const line = /^synapse_http_server_requests_received\{.*servlet="C\/rooms\/\{roomId\}\/send\/.*code="200"\} (\d+)$/m
    const countIn = (metrics: string) => Number(line.exec(metrics)?.[1] ?? 0)
    await batched('PUT', messagePath(`count${++count}`), { body: text('the first') })
    const [before, there] = [countIn(await server.metrics()), countIn(await server.standbyMetrics())]
    await batched('PUT', messagePath(`count${++count}`), { body: text('counted') })
    expect(countIn(await server.metrics())).toBe(before + 1)
    expect(countIn(await server.standbyMetrics())).toBe(there)
  })
})

describe('an error', () => {
  const plain = ({ status, body, headers }: Awaited<ReturnType<typeof call>>) => ({
    status,
    body,
    headers: Object.fromEntries([...headers].filter(([name]) => !['x-request-id', 'date'].includes(name))),
  })

  it('is the same as at the node that serves', async () => {
    const stranger = await register(api, 'stranger')
    const CASES: readonly (readonly [string, string, Sent])[] = [
      ['PUT', messagePath('error'), { body: 'no json' }],
      ['PUT', messagePath('error'), { body: '[]' }],
      ['PUT', messagePath('error'), { by: stranger.token }],
      ['PUT', `/rooms/nothing/send/m.room.message/t`, {}],
      ['PUT', `/rooms/${enc(room)}/typing/${enc(bob.userId)}`, { body: { typing: true } }],
      ['POST', `/rooms/${enc(room)}/receipt/m.what/${enc('$a')}`, {}],
      ['PUT', '/sendToDevice/org.test/t', { body: { messages: 7 } }],
    ]
    for (const [method, path, sent] of CASES) {
      const expected = plain(await call('serving', method, path, sent))
      expect(expected.status).toBeGreaterThan(399)
      expect({ path, ...plain(await batched(method, path, sent)) }).toEqual({ path, ...expected })
    }
  })

  it('ends a session there too', async () => {
    const leaving = await register(api, 'leaving')
    await api.call('POST', '/logout', { token: leaving.token, body: {} })
    const answer = await batched('PUT', messagePath('gone'), { by: leaving.token, body: text('gone') })
    expect([answer.status, answer.body.errcode]).toEqual([401, 'M_UNKNOWN_TOKEN'])
  })

  it('says when to come back', async () => {
    const hasty = await register(api, 'hasty')
    await join(api, hasty.token, room)
    const answers = await Promise.all(
      Array.from({ length: BURST + 10 }, (_, n) =>
        call('standby', 'PUT', messagePath(`hasty${n}`), { by: hasty.token, body: text('quick') }),
      ),
    )
    const refused = answers.find(({ status }) => status === 429)
    expect(refused?.body.errcode).toBe('M_LIMIT_EXCEEDED')
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(refused?.body.retry_after_ms).toBeGreaterThan(0)
  })
})

describe('registration that is open to this machine alone', () => {
  const open = async (base: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${base}/_matrix/client/v3/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{}',
    })
    await answer.text()
    // With the ways in which one may register.
    return answer.status === 401
  }

  it('is so at either node, and whatever a client or a proxy says', async () => {
    for (const base of [server.baseUrl, server.standbyUrl]) {
      expect(await open(base)).toBe(true)
      for (const headers of [
        { 'x-forwarded-for': '127.0.0.1' },
        { via: '1.1 proxy' },
        { forwarded: 'for=127.0.0.1' },
        { 'x-forwarded-for': '127.0.0.1', 'x-hearth-local-client': '1' },
        { 'x-forwarded-for': '192.0.2.1', 'x-hearth-local-client': '1', 'x-hearth-node': 'x' },
      ])
        expect({ base, headers, is: await open(base, headers) }).toEqual({ base, headers, is: false })
    }
  })
})

describe('what is not usual', () => {
  it('is passed on whole', async () => {
    const long = 'x'.repeat(MAX_BATCHED_BODY_BYTES)
    const WHOLE: readonly (readonly [string, Sent])[] = [
      [messagePath(`long${++count}`), { body: text(long) }],
      [`${messagePath(`query${++count}`)}?org.matrix.msc4140.delay=600000`, { body: text('later') }],
      [messagePath(`type${++count}`), { body: text('text'), headers: { 'content-type': 'text/plain; x="y"' } }],
    ]
    for (const [path, sent] of WHOLE) {
      const before = whole.length
      const { status } = await call('standby', 'PUT', path, sent)
      expect({ path, status, whole: whole.slice(before) }).toEqual({
        path,
        status: 200,
        whole: [`/_matrix/client/v3${path}`],
      })
    }
  })
})
