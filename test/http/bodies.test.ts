import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { UserId } from '../../src/core/ids.ts'
import {
  MAX_BODY_BYTES_OF_SENDER,
  MAX_KEYS_BODY_BYTES,
  MAX_SMALL_BODY_BYTES_IN_FLIGHT,
} from '../../src/domain/limits.ts'
import { createMetrics } from '../../src/domain/metrics.ts'
import type { Services } from '../../src/domain/services.ts'
import { BodyBudget } from '../../src/http/body-budget.ts'
import { createBodyIntake } from '../../src/http/body-intake.ts'
import { addressReader } from '../../src/http/client-address.ts'
import { createCompression } from '../../src/http/compression.ts'
import { AnyObject, endpoint } from '../../src/http/endpoint.ts'
import { apiOf, mountApis } from '../../src/http/mount.ts'
import { CLIENT_CODES } from '../../src/http/role.ts'
import { createServer } from '../../src/http/server.ts'
import { type Account, type Api, createRoom, openApi, register, sendText } from '../support/api.ts'
import { openRequest, type RawRequest } from '../support/raw-request.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { IS_TWO_NODES } from '../support/two-nodes.ts'
import { waitUntil } from '../support/wait.ts'

const MIB = 1024 * 1024
const SHUT_OUT = 'X-Matrix origin="bad.example",destination="localhost",key="ed25519:a",sig="c2ln"'
const NOBODYS = 'X-Matrix origin="localhost",destination="localhost",key="ed25519:a",sig="c2ln"'

let server: TestServer
let api: Api
let alice: Account
let room: string
const open: RawRequest[] = []

beforeAll(async () => {
  server = await startServer({ server_name: 'localhost', federation: { deny: ['bad.example'] } })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  room = await createRoom(api, alice.token)
})
afterEach(() => {
  for (const { socket } of open.splice(0)) socket.destroy()
})
afterAll(async () => {
  await api.close()
  await server.close()
})

function ask(head: string): RawRequest {
  const request = openRequest(server.baseUrl, head)
  open.push(request)
  return request
}
const level = async (name: string) => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(await server.metrics())?.[1])

describe('A1: before a byte of its body is read, a request is refused', () => {
  test.each([
    ['PUT /_matrix/federation/v1/send/1', '', 401, 'M_UNAUTHORIZED'],
    ['PUT /_matrix/federation/v1/send/1', 'authorization: X-Matrix origin=', 401, 'M_UNAUTHORIZED'],
    ['PUT /_matrix/federation/v1/send/1', `authorization: ${SHUT_OUT}`, 403, 'M_FORBIDDEN'],
    ['PUT /_matrix/federation/v1/send/1', `authorization: ${NOBODYS}`, 401, 'M_UNAUTHORIZED'],
    ['PUT /_matrix/client/v3/rooms/!a:b/send/m.x/1', '', 401, 'M_MISSING_TOKEN'],
    ['PUT /_matrix/client/v3/rooms/!a:b/send/m.x/1', 'authorization: Bearer nobodys', 401, 'M_UNKNOWN_TOKEN'],
    ['PUT /_matrix/client/v3/no/such/path', '', 404, 'M_UNRECOGNIZED'],
  ])('A1: %s with %j is %d', async (line, header, status, errcode) => {
    const { answer } = ask(`${line} HTTP/1.1\ncontent-length: ${16 * MIB - 10}${header && `\n${header}`}`)
    expect(await answer()).toMatchObject({ status, body: { errcode } })
  })

  test('A1: whose length is over the limit', async () => {
    const line = `PUT /_matrix/client/v3/rooms/${encodeURIComponent(room)}/send/m.x/1 HTTP/1.1`
    const { answer, ended } = ask(`${line}\nauthorization: Bearer ${alice.token}\ncontent-length: ${2 * MIB}`)
    const { status, head, body } = await answer()
    expect({ status, body }).toMatchObject({ status: 413, body: { errcode: 'M_TOO_LARGE' } })
    expect(head).toMatch(/^connection: close/im)
    await ended
  })

  test('A1: whose body nobody wants and is long all the same', async () => {
    const { answer } = ask(
      `POST /_matrix/client/v3/logout HTTP/1.1\nauthorization: Bearer ${alice.token}\ncontent-length: ${2 * MIB}`,
    )
    expect(await answer()).toMatchObject({ status: 413, body: { errcode: 'M_TOO_LARGE' } })
  })

  test('A1: when nobody is known to send it and it is longer than 64 KiB, announced or not', async () => {
    const login = 'POST /_matrix/client/v3/login HTTP/1.1'
    expect(await ask(`${login}\ncontent-length: ${64 * 1024 + 1}`).answer()).toMatchObject({ status: 413 })
    const chunked = ask(`${login}\ntransfer-encoding: chunked`)
    chunked.send(`${(64 * 1024 + 1).toString(16)}\r\n${'x'.repeat(64 * 1024 + 1)}\r\n`)
    expect(await chunked.answer()).toMatchObject({ status: 413 })
    const whole = ask(`${login}\ncontent-length: ${64 * 1024}`)
    whole.send(`"${'x'.repeat(64 * 1024 - 2)}"`)
    expect(await whole.answer()).toMatchObject({ status: 400, body: { errcode: 'M_BAD_JSON' } })
  })
})

describe('A1: a client that waits to be asked for its body (Expect: 100-continue)', () => {
  const WAITS = 'expect: 100-continue'

  test.each([
    ['PUT /_matrix/federation/v1/send/1', '', 1000, 401, 'M_UNAUTHORIZED'],
    ['PUT /_matrix/client/v3/rooms/!a:b/send/m.x/1', 'authorization: Bearer nobodys', 16 * MIB, 401, 'M_UNKNOWN_TOKEN'],
    ['POST /_matrix/client/v3/login', '', MIB, 413, 'M_TOO_LARGE'],
    ['POST /_matrix/media/v3/upload', 'authorization: Bearer nobodys', 1000, 401, 'M_UNKNOWN_TOKEN'],
    ['PUT /_matrix/client/v3/no/such/path', '', 1000, 404, 'M_UNRECOGNIZED'],
  ])('A1: is refused without being asked: %s with %j and %d bytes', async (line, header, bytes, status, errcode) => {
    const { answer, ended } = ask(`${line} HTTP/1.1\ncontent-length: ${bytes}\n${WAITS}${header && `\n${header}`}`)
    const refusal = await answer()
    expect(refusal).toMatchObject({ status, body: { errcode } })
    // The body may never come: nothing else is read here.
    expect(refusal.head).toMatch(/^connection: close$/im)
    await ended
  })

  test('A1: is asked once its headers are good', async () => {
    const body = JSON.stringify({ body: 'late' })
    const path = `/_matrix/client/v3/rooms/${encodeURIComponent(room)}/send/m.x/waits`
    for (const head of [`PUT ${path}`, 'POST /_matrix/media/v3/upload?filename=x']) {
      const { answer, send } = ask(
        `${head} HTTP/1.1\nauthorization: Bearer ${alice.token}\ncontent-length: ${body.length}\n${WAITS}`,
      )
      expect((await answer()).status).toBe(100)
      send(body)
      expect((await answer()).status).toBe(200)
    }
  })
})

test('A9: lengths are looked at first: a megabyte of keys, or of an address, is not read of nobody', async () => {
  for (const path of ['/_matrix/client/v3/login', '/_matrix/client/v3/register/email/requestToken']) {
    const { answer } = ask(`POST ${path} HTTP/1.1\ncontent-length: ${MIB}`)
    expect(await answer()).toMatchObject({ status: 413, body: { errcode: 'M_TOO_LARGE' } })
  }
})

describe('A1: bodies under way', () => {
  const keys = () =>
    ask(
      `PUT /_matrix/client/v3/room_keys/keys?version=1 HTTP/1.1\nauthorization: Bearer ${alice.token}\ncontent-length: ${30 * MIB}`,
    )

  test('A1: hold no more than the budget of their address, while short ones go on, and give it back', async () => {
    const first = keys()
    first.send(Buffer.alloc(20 * MIB))
    await waitUntil('20 MiB held', async () => (await level('hearth_body_bytes')) === 20 * MIB)
    const refused = await keys().answer()
    expect(refused).toMatchObject({ status: 429, body: { errcode: 'M_LIMIT_EXCEEDED', retry_after_ms: 3_000 } })
    expect(refused.head).toMatch(/^retry-after: 3/im)
    await sendText(api, alice.token, room, 'beside', 'beside')
    expect(await level('hearth_body_bytes')).toBe(20 * MIB)
    first.socket.destroy()
    await waitUntil('nothing held', async () => (await level('hearth_body_bytes')) === 0)
    expect(await server.metrics()).toMatch(/^hearth_refused_bodies_total\{reason="sender"\} 1$/m)
  })

  test('A1: are refused in the midst when several together come to more', async () => {
    const both = [keys(), keys()]
    for (const { send } of both) send(Buffer.alloc(17 * MIB))
    const { status } = await Promise.race(both.map(({ answer }) => answer()))
    expect(status).toBe(429)
    expect(await level('hearth_body_bytes')).toBeLessThanOrEqual(MAX_KEYS_BODY_BYTES)
  })

  test('A1: are held no longer once their client is gone, also behind a request that waits', async () => {
    const held = () => level('hearth_body_bytes')
    await waitUntil('nothing held', async () => (await held()) === 0)
    const { next_batch } = await api.call('GET', '/sync', { token: alice.token })
    const sliding = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync'
    const { pos } = await api.call('POST', sliding, { token: alice.token, body: {} })
    const known = `host: hs\r\nauthorization: Bearer ${alice.token}\r\n`
    const path = `/_matrix/client/v3/sync?timeout=60000&since=${encodeURIComponent(next_batch)}`
    const { send, socket } = ask(`GET ${path} HTTP/1.1\nauthorization: Bearer ${alice.token}`)
    const bytes = 64 * 1024
    const long = `content-length: ${bytes}\r\n\r\n`
    send(`POST /_matrix/client/v3/login HTTP/1.1\r\nhost: hs\r\n${long}"${'x'.repeat(bytes - 2)}"`)
    const more = `{"padding":"${'x'.repeat(bytes - '{"padding":""}'.length)}"}`
    send(`POST ${sliding}?timeout=60000&pos=${encodeURIComponent(pos)} HTTP/1.1\r\n${known}${long}${more}`)
    // Of two nodes, the one that stands by takes the answer to the second request, which ends it where it is served.
    const least = IS_TWO_NODES ? bytes : 2 * bytes
    await waitUntil('those behind it held', async () => (await held()) >= least)
    socket.destroy()
    await waitUntil('nothing held', async () => (await held()) === 0)
  })

  test('A1: are bounded in all, whoever sends them, with a part for short ones', () => {
    const budget = new BodyBudget(30 * MIB)
    const senders = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((sender) => ({ sender, most: 30 * MIB, bytes: 0 }))
    expect(senders.map((body) => budget.takeLong(body, 20 * MIB))).toEqual([undefined, undefined, 'everybody'])
    expect(budget.takeLong(senders[0]!, 13 * MIB)).toBe('sender')
    const shorter = { sender: '192.0.2.1', most: 16 * MIB, bytes: 0 }
    expect(budget.takeLong(shorter, 1)).toBe('sender')
    const alone = { sender: '192.0.2.4', most: MIB, bytes: 0 }
    expect(budget.refusalOf(alone, MAX_BODY_BYTES_OF_SENDER + 1)).toBe('sender')
    expect(budget.takeShort(MAX_SMALL_BODY_BYTES_IN_FLIGHT)).toBeUndefined()
    expect(budget.takeShort(1)).toBe('everybody')
    expect(budget.bytes).toBe(56 * MIB)
    budget.giveLong(senders[0]!)
    expect(budget.takeLong(senders[2]!, 20 * MIB)).toBeUndefined()
    for (const body of senders) budget.giveLong(body)
    budget.giveShort(MAX_SMALL_BODY_BYTES_IN_FLIGHT)
    expect(budget.bytes).toBe(0)
  })
})

/** Seconds pass a hundred times as fast. */
describe('A1: a body that takes its time', () => {
  let close: () => Promise<void>
  let baseUrl: string
  let isKnown = true
  const lines: string[] = []
  const put = 'PUT /_matrix/client/v3/echo HTTP/1.1\nauthorization: Bearer t'

  beforeAll(async () => {
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
    const addressOf = addressReader([])
    const { arrivals } = createMetrics({ version: '', node: '' })
    const intake = createBodyIntake({ addressOf, longest: MIB, metrics: arrivals, log, secondMs: 10 })
    const app = createServer({ log, metrics: { observeRequest: () => {}, arrivals }, intake })
    const requester = { userId: '@a:hs' as UserId, userNid: 1, deviceId: 'A', tokenNid: 7, isGuest: false }
    const echo = endpoint('PUT C/echo', { auth: 'user', body: AnyObject }, ({ body }) => body)
    const role = { codes: CLIENT_CODES, maxBodyBytes: MIB, authenticate: () => (isKnown ? requester : undefined) }
    const api = apiOf(
      () => [echo],
      () => role,
    )
    const compression = createCompression(addressOf)
    mountApis(app, [api], { services: {} as Services, log, addressOf, intake, compression })
    await app.listen({ host: '127.0.0.1', port: 0 })
    baseUrl = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
    close = () => app.close()
  })
  afterAll(() => close())

  const begin = (length: number) => {
    const request = openRequest(baseUrl, `${put}\ncontent-length: ${length}`)
    open.push(request)
    return request
  }

  test('A1: is refused with 408 below the least rate, and the log says it once', async () => {
    lines.length = 0
    const slow = Array.from({ length: 20 }, () => begin(1_000))
    for (const { send } of slow) send('{')
    for (const { answer } of slow) expect(await answer()).toMatchObject({ status: 408, body: { errcode: 'M_UNKNOWN' } })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('too slowly')
  })

  test('E2: a thousand that come a byte a second each end by themselves, others are answered, and the log says it once', async () => {
    lines.length = 0
    const slow = Array.from({ length: 1_000 }, () => begin(100_000))
    const dripping = setInterval(() => {
      for (const { send } of slow) send(' ')
    }, 100)
    try {
      const other = begin(2)
      other.send('{}')
      expect(await other.answer()).toMatchObject({ status: 200 })
      const answers = await Promise.all(slow.map(({ answer }) => answer()))
      expect(answers.filter(({ status }) => status !== 408)).toEqual([])
    } finally {
      clearInterval(dripping)
    }
    // Once a minute: the test before this one may have seen it.
    expect(lines.filter((line) => line.includes('too slowly')).length).toBeLessThan(2)
  })

  test('A1: is refused after 30 s even if it comes faster than that', async () => {
    const { send, answer } = begin(MIB)
    send(Buffer.alloc(MIB - 1, ' '))
    expect(await answer()).toMatchObject({ status: 408 })
  })

  test('A1: is put together from pieces of any size', async () => {
    const text = JSON.stringify({ text: 'x'.repeat(200_000) })
    for (const size of [70_000, 1_000, 199_999]) {
      const { send, answer } = begin(text.length)
      for (let at = 0; at < text.length; at += size) send(text.slice(at, at + size))
      expect(await answer()).toMatchObject({ status: 200, body: { text: 'x'.repeat(200_000) } })
    }
  })

  test('A1: is nothing when the token ended meanwhile', async () => {
    const { send, answer } = begin(2)
    send('{')
    isKnown = false
    await waitUntil('a second of it', () => new Promise<boolean>((resolve) => setTimeout(() => resolve(true), 30)))
    send('}')
    expect(await answer()).toMatchObject({ status: 401, body: { errcode: 'M_UNKNOWN_TOKEN' } })
    isKnown = true
  })
})

describe('D3: what is too long in the head of a request', () => {
  test('D3: is said to be the request line', async () => {
    const path = `/_matrix/client/v3/rooms/${'x'.repeat(100_000)}/state`
    const { answer } = ask(`GET ${path} HTTP/1.1`)
    const { status, body } = await answer()
    expect({ status, body }).toMatchObject({ status: 414, body: { errcode: 'M_TOO_LARGE' } })
    expect(body.error).toMatch(/request line is too long.*65536 bytes/)
  })

  test('D3: or the headers', async () => {
    const { answer } = ask(`GET /_matrix/client/versions HTTP/1.1\nx-long: a ${'x'.repeat(100_000)}`)
    const { status, body } = await answer()
    expect({ status, body }).toMatchObject({ status: 431, body: { errcode: 'M_TOO_LARGE' } })
    expect(body.error).toContain('headers')
  })
})
