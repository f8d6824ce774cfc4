import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, type Api, openApi, register } from '../support/api.ts'
import { reached } from '../support/bounds.ts'
import { type FileAnswer, fetchFile, filesIn, uploadFile } from '../support/media.ts'
import { openRequest } from '../support/raw-request.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'

const MAX_BYTES = 300_000

let server: TestServer
let api: Api
let alice: Account
let bob: Account

beforeAll(async () => {
  server = await startServer({ media: { max_upload_bytes: MAX_BYTES } })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  bob = await register(api, 'bob')
})
afterAll(async () => {
  await api.close()
  await server.close()
})

const upload = (bytes: Uint8Array | string, options = {}) => uploadFile(server.baseUrl, alice.token, bytes, options)
const at = (path: string, init: Parameters<typeof fetchFile>[1] = {}) => fetchFile(server.baseUrl + path, init)
const download = (name: string, init: Parameters<typeof fetchFile>[1] = {}) =>
  at(`/_matrix/client/v1/media/download/${name}`, { token: bob.token, ...init })
const directory = (name: string) => join(server.config.data_dir, 'media', name)
const refusal = ({ status, body }: FileAnswer) => `${status} ${body?.errcode}`

describe('a file', () => {
  test('comes back as it was, to everybody with a token, in both dialects', async () => {
    const bytes = randomBytes(200_000)
    const name = await upload(bytes, { type: 'image/png', name: 'Ünï "x".png' })
    for (const root of ['_matrix', '_proto']) {
      const answer = await at(`/${root}/client/v1/media/download/${name}`, { token: bob.token })
      expect(answer.status).toBe(200)
      expect(answer.bytes.equals(bytes)).toBe(true)
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'content-type': 'image/png',
        'content-length': '200000',
        'content-disposition': `inline; filename*=UTF-8''%C3%9Cn%C3%AF%20%22x%22.png`,
        'content-security-policy': expect.stringContaining('sandbox'),
        'cross-origin-resource-policy': 'cross-origin',
        'x-content-type-options': 'nosniff',
        'cache-control': 'private, max-age=86400, immutable',
        'access-control-allow-origin': '*',
      })
    }
  })

  test('that would run in a browser is only ever saved (88)', async () => {
    for (const type of ['text/html', 'image/svg+xml', 'application/xhtml+xml', 'application/javascript', 'text/xml']) {
      const { headers } = await download(await upload('<script>alert(1)</script>', { type }))
      expect(headers.get('content-disposition'), type).toBe('attachment')
    }
  })

  test('of any content type or none is taken', async () => {
    const types = {
      'text/plain': 'text/plain; charset=utf-8',
      image: 'application/octet-stream',
      '': 'application/octet-stream',
    }
    for (const [type, shown] of Object.entries({ ...types, 'application/json': 'application/json' })) {
      const { headers, bytes } = await download(await upload('{"a":1}', { type }))
      expect(headers.get('content-type')).toBe(shown)
      expect(bytes.toString()).toBe('{"a":1}')
    }
  })

  test('may be empty', async () => {
    expect((await download(await upload(''))).bytes).toHaveLength(0)
  })

  test('gets the name that its path gives it', async () => {
    const name = await upload('x', { name: 'mine.txt', type: 'text/plain' })
    const { headers } = await download(`${name}/your%20own.txt`)
    expect(headers.get('content-disposition')).toBe('inline; filename="your own.txt"')
  })

  test('comes in parts, and not again to who has it', async () => {
    const name = await upload('0123456789')
    const part = await download(name, { headers: { range: 'bytes=2-4' } })
    expect([part.status, part.bytes.toString(), part.headers.get('content-range')]).toEqual([
      206,
      '234',
      'bytes 2-4/10',
    ])
    expect((await download(name, { headers: { range: 'bytes=10-' } })).status).toBe(416)
    const etag = part.headers.get('etag')!
    const again = await download(name, { headers: { 'if-none-match': etag } })
    expect([again.status, again.bytes.length]).toEqual([304, 0])
    const changed = await download(name, { headers: { range: 'bytes=2-4', 'if-range': '"other"' } })
    expect(changed.status).toBe(200)
  })

  test('is kept once, however often and by whomever it is uploaded', async () => {
    const bytes = randomBytes(1_000)
    const before = filesIn(directory('files')).length
    const names = await Promise.all([...'12345678'].map(() => upload(bytes)))
    expect(new Set(names).size).toBe(8)
    const files = filesIn(directory('files'))
    expect(files.length).toBe(before + 1)
    expect(files.some((path) => path.endsWith(createHash('sha256').update(bytes).digest('hex')))).toBe(true)
    expect(filesIn(directory('incoming'))).toEqual([])
  })
})

describe('an upload', () => {
  test('needs a token, and so does the configuration', async () => {
    const none = { method: 'POST', body: 'x' }
    expect(refusal(await at('/_matrix/media/v3/upload', none))).toBe('401 M_MISSING_TOKEN')
    for (const path of ['/_matrix/media/v3/config', '/_matrix/media/r0/config', '/_proto/client/v1/media/config']) {
      expect(refusal(await at(path))).toBe('401 M_MISSING_TOKEN')
      expect((await at(path, { token: bob.token })).body).toEqual({ 'm.upload.size': MAX_BYTES })
    }
  })

  test('that is too large is refused, whether it says so at once or not, and leaves nothing', async () => {
    const before = filesIn(server.config.data_dir).length
    const post = (body: NonNullable<RequestInit['body']>, more = {}) =>
      at('/_matrix/media/v3/upload', { method: 'POST', token: alice.token, body, ...more })
    expect(refusal(await post(Buffer.alloc(MAX_BYTES + 1)))).toBe('413 M_TOO_LARGE')
    let isOver = false
    const endless = new ReadableStream({
      async pull(controller) {
        await setImmediate()
        if (isOver) controller.close()
        else controller.enqueue(new Uint8Array(60_000))
      },
    })
    const answer = await post(endless, { duplex: 'half' }).then(refusal, () => '413 M_TOO_LARGE')
    isOver = true
    expect(answer).toBe('413 M_TOO_LARGE')
    expect((await post(Buffer.alloc(MAX_BYTES))).status).toBe(200)
    await waitUntil('nothing left', () => filesIn(directory('incoming')).length === 0)
    expect(filesIn(server.config.data_dir).length).toBe(before + 1)
  })

  test('whose client goes away leaves nothing (R30)', async () => {
    const before = filesIn(directory('files')).length
    const sent = request(`${server.baseUrl}/_matrix/media/v3/upload`, {
      method: 'POST',
      headers: { authorization: `Bearer ${alice.token}`, 'content-length': 200_000 },
    })
    sent.on('error', () => {})
    sent.write(Buffer.alloc(100_000))
    await waitUntil('something there', () => filesIn(directory('incoming')).length === 1)
    sent.destroy()
    await waitUntil('nothing left', () => filesIn(directory('incoming')).length === 0)
    expect(filesIn(directory('files')).length).toBe(before)
  })
})

describe('A7: after an upload that failed', () => {
  const half = (extra: string) =>
    openRequest(
      server.baseUrl,
      `POST /_matrix/media/v3/upload HTTP/1.1\nauthorization: Bearer ${alice.token}\n${extra}`,
    )

  test('A7: the connection is closed once the client has its answer, so that nobody uses it again', async () => {
    const { send, answer, ended } = half('transfer-encoding: chunked')
    const chunk = Buffer.alloc(200_000)
    send(Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]))
    send(Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]))
    const { status, head } = await answer()
    expect(status).toBe(413)
    expect(head).toMatch(/^connection: close$/im)
    await ended
  })

  test('A7: also when the disk is too full, which the answer says; reads and health go on', async () => {
    const name = await upload('before')
    await server.restart({ media: { reserved_disk_bytes: 2 ** 50 } })
    const { send, answer, ended } = half('content-length: 250000')
    send(Buffer.alloc(100_000))
    const { status, head, body } = await answer()
    expect([status, body.errcode]).toEqual([507, 'M_UNKNOWN'])
    expect(body.error).toContain('disk')
    expect(await reached(server.metrics(), 'disk reserve')).toBe(1)
    expect(head).toMatch(/^connection: close$/im)
    await ended
    expect((await download(name)).bytes.toString()).toBe('before')
    expect((await fetch(`${server.baseUrl}/health/ready`)).status).toBe(200)
    expect(filesIn(directory('incoming'))).toEqual([])
    await server.restart({ media: { reserved_disk_bytes: 0 } })
    expect(await upload('after')).toMatch(/./)
  })

  test('A7: of a few bytes the connection goes on', async () => {
    const { send, answer } = openRequest(
      server.baseUrl,
      'POST /_matrix/media/v3/upload HTTP/1.1\nauthorization: Bearer nobodys\ncontent-length: 5',
    )
    send('helloGET /_matrix/client/versions HTTP/1.1\r\nhost: hs\r\n\r\n')
    expect((await answer()).status).toBe(401)
    expect((await answer()).status).toBe(200)
  })
})

describe('a name for an upload to come', () => {
  const create = async (token = alice.token) => (await at('/_matrix/media/v1/create', { method: 'POST', token })).body
  const put = (name: string, body = 'late', token = alice.token) =>
    at(`/_matrix/media/v3/upload/${name}`, { method: 'PUT', token, body })
  const nameOf = ({ content_uri }: { content_uri: string }) => content_uri.slice('mxc://'.length)

  test('is answered with the file as soon as it is there', async () => {
    const made = await create()
    expect(made.unused_expires_at).toBeGreaterThan(Date.now() + 23 * 3_600_000)
    const name = nameOf(made)
    expect(refusal(await download(`${name}?timeout_ms=0`))).toBe('504 M_NOT_YET_UPLOADED')
    const waiting = download(`${name}?timeout_ms=30000`)
    expect((await put(name)).body).toEqual({})
    expect((await waiting).bytes.toString()).toBe('late')
  })

  test('takes one file, from its owner, even of many at once', async () => {
    const name = nameOf(await create())
    expect(refusal(await put(name, 'x', bob.token))).toBe('403 M_FORBIDDEN')
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map((text) => put(name, text)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409])
    expect(refusal(await put(name, 'again'))).toBe('409 M_CANNOT_OVERWRITE_MEDIA')
    const kept = answers.findIndex(({ status }) => status === 200)
    expect((await download(name)).bytes.toString()).toBe('abcd'[kept])
  })

  test('that was never given out, or is over, is none', async () => {
    expect(refusal(await put(`${server.config.server_name}/nothing`))).toBe('404 M_NOT_FOUND')
    expect(refusal(await put('other.example.org/nothing'))).toBe('404 M_NOT_FOUND')
    const name = nameOf(await create())
    await server.database.db.tx((tx) =>
      tx.query('UPDATE media SET expires_at = 1 WHERE media_id = $1', [name.split('/')[1]]),
    )
    expect(refusal(await put(name))).toBe('404 M_NOT_FOUND')
    expect(refusal(await download(name))).toBe('404 M_NOT_FOUND')
  })

  test('is given out to one user only so often', async () => {
    const carol = await register(api, 'carol')
    const answers = await Promise.all(
      Array.from({ length: 25 }, () => at('/_matrix/media/v1/create', { method: 'POST', token: carol.token })),
    )
    expect(answers.filter(({ status }) => status === 200).length).toBe(20)
    expect(answers.filter((answer) => refusal(answer) === '429 M_LIMIT_EXCEEDED').length).toBe(5)
  })
})

describe('a download', () => {
  test.each(['..%2f..%2fetc', 'a%00b', 'a.b', '%2e%2e', 'ä', 'x'.repeat(300)])(
    'of %s finds nothing (84)',
    async (id) => {
      const { status } = await download(`${server.config.server_name}/${id}`)
      expect([400, 404]).toContain(status)
    },
  )

  test('without a token finds nothing new (89), and never asks another server (70)', async () => {
    const name = await upload('secret')
    for (const path of ['media/v3', 'media/r0', 'media/v1']) {
      expect(refusal(await at(`/_matrix/${path}/download/${name}`))).toBe('404 M_NOT_FOUND')
      expect(refusal(await at(`/_matrix/${path}/download/${name}/a.txt`))).toBe('404 M_NOT_FOUND')
      expect(refusal(await at(`/_matrix/${path}/thumbnail/${name}?width=1&height=1`))).toBe('404 M_NOT_FOUND')
      expect((await at(`/_matrix/${path}/download/${name}`, { token: bob.token })).status).toBe(200)
      expect((await at(`/_matrix/${path}/download/${name}/a.txt`, { token: bob.token })).status).toBe(200)
    }
    expect(refusal(await at('/_matrix/client/v1/media/download/a/b'))).toBe('401 M_MISSING_TOKEN')
    expect(refusal(await at('/_matrix/media/v3/download/other.test/abc'))).toBe('404 M_NOT_FOUND')
  })

  test('by a server that speaks the other dialect needs none', async () => {
    const name = await upload('for peers')
    const answer = await at(`/_proto/media/v3/download/${name}?allow_remote=false`)
    expect(answer.bytes.toString()).toBe('for peers')
    expect(refusal(await at(`/_proto/media/v3/download/${name}`))).toBe('404 M_NOT_FOUND')
  })
})

test('what was uploaded while everybody might see it stays open after', async () => {
  await server.restart({ media: { without_token: 'open' } })
  const old = await upload('old')
  const answer = await at(`/_matrix/media/r0/download/${old}`)
  expect([answer.bytes.toString(), answer.headers.get('cache-control')]).toEqual([
    'old',
    'public, max-age=86400, immutable',
  ])
  await server.restart({ media: { without_token: 'frozen' } })
  expect((await at(`/_matrix/media/v3/download/${old}`)).bytes.toString()).toBe('old')
  expect((await at(`/_matrix/media/v3/download/${await upload('new')}`)).status).toBe(404)
})

test("a user's files come to no more than the quota, even of many uploads at once", async () => {
  await server.restart({ media: { max_bytes_per_user: 10_000 } })
  const dora = await register(api, 'dora')
  const post = (bytes: number) =>
    at('/_matrix/media/v3/upload', { method: 'POST', token: dora.token, body: randomBytes(bytes) })
  const answers = await Promise.all(Array.from({ length: 8 }, () => post(3_000)))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 403, 403, 403, 403, 403])
  expect(refusal(await post(2_000))).toBe('403 M_FORBIDDEN')
  expect((await post(1_000)).status).toBe(200)
})
