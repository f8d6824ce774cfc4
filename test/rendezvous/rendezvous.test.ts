import { request } from 'undici'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MAX_RENDEZVOUS_PER_ADDRESS, RENDEZVOUS_MS } from '../../src/domain/limits/rendezvous.ts'
import { type Api, openApi, register } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'

const OLD = '/_matrix/client/unstable/org.matrix.msc4108/rendezvous'
const V1 = '/_matrix/client/v1/rendezvous'

let server: TestServer
let api: Api
let token: string
let ahead = 0

beforeAll(async () => {
  server = await startServer({}, { clock: { now: () => Date.now() + ahead } })
  api = openApi(server.baseUrl)
  token = (await register(api, 'alice')).token
})
afterAll(async () => {
  await api.close()
  await server.close()
})
/** All earlier sessions have expired. */
beforeEach(() => {
  ahead += RENDEZVOUS_MS
})

const text = (method: string, url: string, body?: string, headers: Record<string, string> = {}) =>
  fetch(url.startsWith('/') ? server.baseUrl + url : url, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'text/plain' }), ...headers },
    ...(body !== undefined && { body }),
  })

async function create(data = 'hello'): Promise<{ url: string; etag: string; answer: Response }> {
  const answer = await text('POST', OLD, data)
  expect(answer.status).toBe(201)
  const { url } = (await answer.json()) as { url: string }
  // The server does not know the port that it listens on.
  return { url: new URL(url).pathname, etag: answer.headers.get('etag')!, answer }
}

describe('a session of 2024', () => {
  it('is a place where two devices leave each other texts', async () => {
    const { url, etag, answer } = await create()
    expect(Date.parse(answer.headers.get('expires')!)).toBeGreaterThan(Date.now() + ahead + RENDEZVOUS_MS - 5_000)
    expect(answer.headers.get('access-control-expose-headers')).toBe('ETag')
    expect(answer.headers.get('cache-control')).toContain('no-store')
    expect((await text('GET', url, undefined, { 'if-none-match': etag })).status).toBe(304)
    const read = await text('GET', url)
    expect([read.status, read.headers.get('content-type'), await read.text()]).toEqual([200, 'text/plain', 'hello'])
    const written = await text('PUT', url, 'answer', { 'if-match': etag })
    expect([written.status, await written.text()]).toEqual([202, ''])
    const next = written.headers.get('etag')!
    expect(next).not.toBe(etag)
    const late = await text('PUT', url, 'too late', { 'if-match': etag })
    expect([late.status, late.headers.get('etag')]).toEqual([412, next])
    expect(await late.json()).toMatchObject({
      errcode: 'M_UNKNOWN',
      'org.matrix.msc4108.errcode': 'M_CONCURRENT_WRITE',
    })
    expect(await (await text('GET', url, undefined, { 'if-none-match': etag })).text()).toBe('answer')
    const unchanged = await text('GET', url, undefined, {
      'if-none-match': (await text('GET', url)).headers.get('etag') ?? '',
    })
    const gone = await text('DELETE', url)
    // Such answers must not say the length of a body (RFC 9110, section 8.6).
    const lengthOf = ({ status, headers }: Response) => [status, headers.get('content-length')]
    expect([unchanged, gone].map(lengthOf)).toEqual([
      [304, null],
      [204, null],
    ])
    expect((await text('GET', url)).status).toBe(404)
    expect((await text('DELETE', url)).status).toBe(404)
  })

  it('lets browsers send and see revisions', async () => {
    const { url } = await create()
    const asked = { origin: 'https://app.example.org', 'access-control-request-method': 'PUT' }
    for (const path of [OLD, url]) {
      const { headers, status } = await text('OPTIONS', path, undefined, asked)
      expect([status, headers.get('access-control-allow-origin')]).toEqual([204, '*'])
      expect(headers.get('access-control-allow-headers')).toContain('If-Match, If-None-Match')
    }
  })

  it('refuses 1 MB, announced or not, and keeps what is there', async () => {
    const large = 'x'.repeat(1_000_000)
    const { url, etag } = await create()
    for (const answer of [await text('POST', OLD, large), await text('PUT', url, large, { 'if-match': etag })]) {
      expect([answer.status, ((await answer.json()) as { errcode: string }).errcode]).toEqual([413, 'M_TOO_LARGE'])
    }
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(large))
        controller.close()
      },
    })
    const headers = { 'content-type': 'text/plain' }
    const unannounced = await fetch(server.baseUrl + OLD, {
      method: 'POST',
      body: stream,
      duplex: 'half',
      headers,
    } as never)
    expect(unannounced.status).toBe(413)
    expect(await (await text('GET', url)).text()).toBe('hello')
    expect((await text('POST', OLD, 'x'.repeat(4096))).status).toBe(201)
  })

  it('refuses what is no text, and a write that has seen nothing', async () => {
    const { url } = await create()
    expect((await text('POST', OLD, '{}', { 'content-type': 'application/json' })).status).toBe(400)
    expect((await text('PUT', url, 'x')).status).toBe(400)
  })

  it('expires, and goes with the process', async () => {
    const { url } = await create()
    ahead += RENDEZVOUS_MS
    expect((await text('GET', url)).status).toBe(404)
    const other = await create()
    await server.restart()
    expect((await text('GET', other.url)).status).toBe(404)
  })

  it('is one of few of an address', async () => {
    for (let i = 0; i < MAX_RENDEZVOUS_PER_ADDRESS; i++) await create()
    const answer = await text('POST', OLD, 'x')
    expect([answer.status, ((await answer.json()) as { errcode: string }).errcode]).toEqual([429, 'M_LIMIT_EXCEEDED'])
    ahead += RENDEZVOUS_MS
    await create()
  })
})

describe('a session of MSC4388', () => {
  const put = (id: string, sequence_token: string, data: string, at = V1) =>
    api.request('PUT', `${at}/${id}`, { body: { sequence_token, data } })

  it('is written by who has seen what is there, and a repeat changes nothing', async () => {
    expect(await api.call('GET', V1)).toEqual({ create_available: true })
    const made = await api.call('POST', V1, { body: { data: 'hello' } })
    expect(made.expires_in_ms).toBeGreaterThan(RENDEZVOUS_MS - 5_000)
    const { id, sequence_token: first } = made
    expect(await api.call('GET', `${V1}/${id}`)).toMatchObject({ data: 'hello', sequence_token: first })
    const { sequence_token: second } = (await put(id, first, 'answer')).body
    expect(second).not.toBe(first)
    expect(await put(id, first, 'answer')).toEqual({ status: 200, body: { sequence_token: second } })
    expect(await put(id, first, 'other')).toMatchObject({ status: 409, body: { errcode: 'M_CONCURRENT_WRITE' } })
    const unstable = '/_matrix/client/unstable/io.element.msc4388/rendezvous'
    const refused = await put(id, first, 'other', unstable)
    expect(refused).toMatchObject({ status: 409, body: { errcode: 'IO_ELEMENT_MSC4388_CONCURRENT_WRITE' } })
    expect((await put(id, second, 'answer')).body.sequence_token).not.toBe(second)
    expect(await api.request('DELETE', `${unstable}/${id}`)).toEqual({ status: 200, body: {} })
    expect(await api.request('GET', `${V1}/${id}`)).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
  })

  it('is shown to clients, not to people who are sent to it', async () => {
    const { id } = await api.call('POST', V1, { body: { data: '<script>' } })
    // What browsers send; `fetch` would overwrite it.
    const answer = await request(`${server.baseUrl}${V1}/${id}`, { headers: { 'sec-fetch-mode': 'navigate' } })
    expect([answer.statusCode, await answer.body.text()]).toEqual([403, expect.not.stringContaining('script>')])
    expect((await text('GET', `${V1}/${id}`)).headers.get('cache-control')).toBe('no-store')
  })

  it('refuses 1 MB', async () => {
    const { id, sequence_token } = await api.call('POST', V1, { body: { data: 'x' } })
    const large = 'x'.repeat(1_000_000)
    expect(await api.request('POST', V1, { body: { data: large } })).toMatchObject({ status: 413 })
    expect(await put(id, sequence_token, 'x'.repeat(5_000))).toMatchObject({
      status: 413,
      body: { errcode: 'M_TOO_LARGE' },
    })
  })

  it('is begun by whom operators allow', async () => {
    await server.restart({ qr_login: { rendezvous: 'users' } })
    expect(await api.call('GET', V1)).toEqual({ create_available: false })
    expect(await api.call('GET', V1, { token })).toEqual({ create_available: true })
    expect(await api.request('POST', V1, { body: { data: 'x' } })).toMatchObject({ status: 403 })
    expect((await api.request('POST', V1, { token, body: { data: 'x' } })).status).toBe(200)
    const features = async () => (await api.call('GET', '/_matrix/client/versions')).unstable_features
    expect((await features())['org.matrix.msc4108']).toBeUndefined()
    await server.restart({ qr_login: { rendezvous: 'nobody' } })
    expect(await api.request('GET', V1, { token })).toMatchObject({ status: 404, body: { errcode: 'M_UNRECOGNIZED' } })
    expect((await text('POST', OLD, 'x')).status).toBe(404)
    await server.restart({ qr_login: { rendezvous: 'anyone' } })
    expect((await features())['org.matrix.msc4108']).toBe(true)
  })
})
