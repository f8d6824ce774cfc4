import { randomBytes } from 'node:crypto'
import { type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { COMPRESSED_FROM_BYTES, MAX_COMPRESSIONS_PER_NETWORK } from '../../src/domain/limits/compression.ts'
import { createMetrics } from '../../src/domain/metrics.ts'
import type { Services } from '../../src/domain/services.ts'
import { createBodyIntake } from '../../src/http/body-intake.ts'
import { addressReader } from '../../src/http/client-address.ts'
import { createCompression, takesGzip } from '../../src/http/compression.ts'
import { endpoint, rawReply } from '../../src/http/endpoint.ts'
import { apiOf, mountApis } from '../../src/http/mount.ts'
import { CLIENT_CODES, type Role } from '../../src/http/role.ts'
import { createServer, type Declined } from '../../src/http/server.ts'
import { waitUntil } from '../support/wait.ts'

const PIECE_BYTES = 256 * 1024
const LARGE = { word: 'large '.repeat(COMPRESSED_FROM_BYTES / 6 + 1) }
/** Bytes of the endless answer that were asked of their source, and how often it was ended. */
const endless = { bytes: 0, ended: 0 }

async function* endlessPieces() {
  try {
    for (;;) {
      endless.bytes += PIECE_BYTES
      yield randomBytes(PIECE_BYTES)
      await turn()
    }
  } finally {
    endless.ended++
  }
}

// biome-ignore lint/correctness/useYield: it fails before its first piece
async function* failing(): AsyncGenerator<Buffer> {
  await turn()
  throw new Error('no first piece')
}

const NONE = { auth: 'none' } as const
const endpoints = [
  endpoint('GET C/small', NONE, () => ({ word: 'small' })),
  endpoint('GET C/just_small', NONE, () => rawReply({ body: `"${'a'.repeat(COMPRESSED_FROM_BYTES - 3)}"` })),
  endpoint('GET C/large', NONE, () => LARGE),
  endpoint('GET C/large_bytes', NONE, () => rawReply({ status: 201, body: Buffer.from(JSON.stringify(LARGE)) })),
  endpoint('GET C/large_file', NONE, () => {
    return rawReply({ headers: { 'content-type': 'application/json' }, body: JSON.stringify(LARGE) })
  }),
  endpoint('GET C/pieces', NONE, () =>
    rawReply({ body: Readable.from(['[1,', '2,', '3]'].map((text) => Buffer.from(text))) }),
  ),
  endpoint('GET C/endless', NONE, () => rawReply({ body: Readable.from(endlessPieces()) })),
  endpoint('GET C/failing', NONE, () => rawReply({ body: Readable.from(failing()) })),
]

let port: number
let close: () => Promise<void>

async function openApp(declined?: Declined): Promise<FastifyInstance> {
  const log = pino({ level: 'silent' })
  const addressOf = addressReader([])
  const { arrivals } = createMetrics({ version: '', node: '' })
  const intake = createBodyIntake({ addressOf, longest: 100_000, metrics: arrivals, log })
  const app = createServer({ log, metrics: { observeRequest: () => {}, arrivals }, intake, declined })
  const role: Role = { codes: CLIENT_CODES, maxBodyBytes: 100, authenticate: () => undefined }
  const api = apiOf(
    () => endpoints,
    () => role,
  )
  const compression = createCompression(addressOf)
  mountApis(app, [api], { services: {} as Services, log, addressOf, intake, compression })
  await app.listen({ host: '127.0.0.1', port: 0 })
  return app
}

beforeAll(async () => {
  const app = await openApp()
  port = (app.server.address() as AddressInfo).port
  close = () => app.close()
})

afterAll(() => close())

function open(path: string, accepted = 'gzip'): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { 'accept-encoding': accepted }
    request({ port, path: `/_matrix/client/v3/${path}`, headers, agent: false }, resolve)
      .on('error', reject)
      .end()
  })
}

async function ask(path: string, accepted?: string) {
  const answer = await open(path, accepted)
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const { 'content-encoding': encoding, vary } = answer.headers
  const text = (encoding === 'gzip' ? gunzipSync(bytes) : bytes).toString()
  return { status: answer.statusCode, encoding, vary, bytes: bytes.length, json: JSON.parse(text) }
}

describe('a large JSON answer', () => {
  it('is compressed for a client that takes it', async () => {
    for (const [path, status] of [
      ['large', 200],
      ['large_bytes', 201],
    ] as const) {
      const answer = await ask(path)
      expect(answer).toMatchObject({ status, encoding: 'gzip', vary: 'accept-encoding', json: LARGE })
      expect(answer.bytes).toBeLessThan(COMPRESSED_FROM_BYTES / 10)
    }
  })

  it('is compressed while it is made', async () => {
    expect(await ask('pieces')).toMatchObject({ encoding: 'gzip', vary: 'accept-encoding', json: [1, 2, 3] })
  })

  it('goes as it is to other clients, and says that it might not have', async () => {
    for (const path of ['large', 'large_bytes', 'pieces']) {
      const answer = await ask(path, 'br')
      expect([path, answer.encoding, answer.vary]).toEqual([path, undefined, 'accept-encoding'])
    }
  })
})

test('small answers, and files, are never compressed', async () => {
  for (const path of ['small', 'just_small', 'large_file', 'nowhere']) {
    const answer = await ask(path)
    expect([path, answer.encoding, answer.vary]).toEqual([path, undefined, undefined])
  }
})

test('an answer that fails before its first byte is an error, uncompressed', async () => {
  const answer = await ask('failing')
  expect(answer).toMatchObject({ status: 500, encoding: undefined, json: { errcode: 'M_UNKNOWN' } })
})

test('an answer that fails before its first byte leaves no headers to the node that the request is passed on to', async () => {
  const app = await openApp((_request, response) => response.end(JSON.stringify(response.getHeaders())))
  const { port: itsPort } = app.server.address() as AddressInfo
  const headers = { 'accept-encoding': 'gzip' }
  const answer = await fetch(`http://127.0.0.1:${itsPort}/_matrix/client/v3/failing`, { headers })
  expect(await answer.json()).toEqual({})
  await app.close()
})

test('clients that do not read hold little memory, and do not keep others from their answers', async () => {
  const before = { ...endless }
  const stuck: IncomingMessage[] = []
  for (let index = 0; index < MAX_COMPRESSIONS_PER_NETWORK; index++) stuck.push((await open('endless')).pause())
  let known = -1
  await waitUntil(
    'the source to be left alone',
    () => {
      const isStill = endless.bytes === known
      known = endless.bytes
      return isStill
    },
    { everyMs: 300 },
  )
  // What the sockets of both sides hold, and a few pieces.
  expect(endless.bytes - before.bytes).toBeLessThan(MAX_COMPRESSIONS_PER_NETWORK * 16 * 1024 * 1024)
  expect(await ask('large')).toMatchObject({ encoding: undefined, json: LARGE })
  for (const answer of stuck) answer.destroy()
  await waitUntil('the sources to end', () => endless.ended - before.ended === stuck.length)
  await waitUntil('room for another', async () => (await ask('large')).encoding === 'gzip')
})

test('the header is read as RFC 9110 says', () => {
  const taken = [
    'gzip',
    'GZIP',
    'br, gzip',
    'gzip;q=0.1',
    'deflate;q=1, gzip ; q=0.5',
    '*',
    'br;q=0, *;q=0.3',
    'x-gzip',
  ]
  for (const header of taken) expect([header, takesGzip(header)]).toEqual([header, true])
  const refused = [undefined, '', 'br', 'identity', 'gzip;q=0', 'gzip; q=0.0, *', '*;q=0', 'gzip;q=what', 'zgzip']
  for (const header of refused) expect([header, takesGzip(header)]).toEqual([header, false])
})
