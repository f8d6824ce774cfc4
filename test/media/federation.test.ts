import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import sharp from 'sharp'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Account } from '../support/api.ts'
import { fetchFile, filesIn, uploadFile } from '../support/media.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { openStranger, type Stranger } from '../support/stranger.ts'
import type { TlsHandler } from '../support/tls-server.ts'

let street: Neighbourhood
let here: Neighbour
let there: Neighbour
let stranger: Stranger
let alice: Account
let bob: Account
/** What the stranger says about anything but its keys. */
let say: TlsHandler

beforeAll(async () => {
  street = openNeighbourhood()
  ;[here, there, stranger] = await Promise.all([
    street.open({ media: { max_remote_bytes: 200_000 } }),
    street.open(),
    openStranger(street.authority),
  ])
  alice = await here.person('alice')
  bob = await there.person('bob')
  const keys = stranger.front.handler
  stranger.front.handler = (request, response) =>
    request.url.startsWith('/_matrix/key/') ? keys(request, response) : say(request, response)
})
afterAll(async () => {
  await stranger.close()
  await street.close()
})
beforeEach(() => {
  stranger.front.requests.length = 0
})

const from = (neighbour: Neighbour, token: string, name: string, what = 'download', query = '') =>
  fetchFile(`${neighbour.server.baseUrl}/_matrix/client/v1/media/${what}/${name}${query}`, { token })
const asked = () =>
  stranger.front.requests.map(({ url }) => url.replace(/\?.*/, '')).filter((url) => !url.includes('/key/'))
const left = () => filesIn(`${here.server.config.data_dir}/media/incoming`)
let count = 0
const newName = () => `${stranger.name}/file${++count}`

const multipart = (part: string, body: string | Buffer, boundary = 'gap'): Buffer =>
  Buffer.concat([
    Buffer.from(`--${boundary}\r\nContent-Type: application/json\r\n\r\n{}\r\n--${boundary}\r\n${part}\r\n\r\n`),
    ...[Buffer.from(body), Buffer.from(`\r\n--${boundary}--\r\n`)],
  ])

function wrapped(response: ServerResponse, body: Buffer | string, type = 'multipart/mixed; boundary="gap"'): void {
  response.writeHead(200, { 'content-type': type }).end(body)
}

describe('two servers', () => {
  test("show each other's files and thumbnails, both ways", async () => {
    const image = await sharp({ create: { width: 400, height: 300, channels: 3, background: 'teal' } })
      .png()
      .toBuffer()
    for (const [mine, my, other, their] of [
      [here, alice, there, bob],
      [there, bob, here, alice],
    ] as const) {
      const name = await uploadFile(mine.server.baseUrl, my.token, image, { type: 'image/png', name: 'é.png' })
      const answers = await Promise.all([1, 2, 3].map(() => from(other, their.token, name)))
      for (const { status, bytes, headers } of answers) {
        expect([status, headers.get('content-type'), bytes.equals(image)]).toEqual([200, 'image/png', true])
        expect(headers.get('content-disposition')).toBe("inline; filename*=UTF-8''%C3%A9.png")
      }
      const reached = mine.front.requests.filter(({ url }) => url.includes('/media/'))
      expect(reached.map(({ url }) => url)).toEqual([
        expect.stringMatching(/^\/_matrix\/federation\/v1\/media\/download\//),
      ])
      const small = await from(other, their.token, name, 'thumbnail', '?width=64&height=64&method=crop')
      expect(await sharp(small.bytes).metadata()).toMatchObject({ width: 96, height: 96, format: 'jpeg' })
      mine.front.requests.length = 0
    }
  })

  test('wait for each other’s uploads, and know what is not there', async () => {
    const made = await there.api.call('POST', '/_matrix/media/v1/create', { token: bob.token })
    const name = String(made.content_uri).slice('mxc://'.length)
    const waiting = from(here, alice.token, name)
    const put = { method: 'PUT', token: bob.token, body: 'at last' }
    await fetchFile(`${there.server.baseUrl}/_matrix/media/v3/upload/${name}`, put)
    expect((await waiting).bytes.toString()).toBe('at last')
    const none = await from(here, alice.token, `${there.name}/nothing`)
    expect([none.status, none.body.errcode]).toEqual([404, 'M_NOT_FOUND'])
  })

  test('that know only the old endpoint are asked by that', async () => {
    say = ({ url }, response) => {
      const isOld = url.includes('/media/v3/download/')
      response.writeHead(isOld ? 200 : 404, {
        'content-type': isOld ? 'text/plain' : 'application/json',
        'content-disposition': 'inline; filename="old.txt"',
      })
      response.end(isOld ? 'as of old' : JSON.stringify({ errcode: 'M_UNRECOGNIZED', error: '' }))
    }
    const name = newName()
    const { status, bytes, headers } = await from(here, alice.token, name)
    expect([status, bytes.toString()]).toEqual([200, 'as of old'])
    expect(headers.get('content-disposition')).toBe('inline; filename="old.txt"')
    const last = stranger.front.requests.at(-1)!
    expect(last.url).toMatch(
      new RegExp(`^/_matrix/media/v3/download/${encodeURIComponent(stranger.name)}/.*allow_remote=false`),
    )
    expect(last.headers.authorization).toBeUndefined()
  })

  test.each([
    [400, { errcode: 'M_UNKNOWN', error: 'what?' }],
    [400, 'bad request'],
  ])('B16: that answer %i on the new path are asked on the old one', async (status, answer) => {
    say = ({ url }, response) => {
      const isOld = url.includes('/media/v3/download/')
      response.writeHead(isOld ? 200 : status, { 'content-type': isOld ? 'text/plain' : 'application/json' })
      response.end(isOld ? 'as of old' : JSON.stringify(answer))
    }
    const got = await from(here, alice.token, newName())
    expect([got.status, got.bytes.toString()]).toEqual([200, 'as of old'])
  })
})

describe('another server', () => {
  const signed = (uri: string) =>
    fetchFile(`${here.server.baseUrl}${uri}`, { headers: { authorization: authorize(uri) } })
  let authorize: (uri: string) => string

  beforeAll(async () => {
    const { signJson } = await import('../../src/core/signing/json-signature.ts')
    authorize = (uri) => {
      const object = { method: 'GET', uri, origin: stranger.name, destination: here.name }
      const { signatures } = signJson(object, stranger.name, stranger.key) as {
        signatures: Record<string, Record<string, string>>
      }
      const sig = signatures[stranger.name]?.[stranger.key.keyId]
      return `X-Matrix origin="${stranger.name}",destination="${here.name}",key="${stranger.key.keyId}",sig="${sig}"`
    }
  })

  test('gets files and thumbnails of our users in two parts, in both dialects', async () => {
    const image = await sharp({ create: { width: 90, height: 60, channels: 3, background: 'teal' } })
      .jpeg()
      .toBuffer()
    const name = await uploadFile(here.server.baseUrl, alice.token, image, { type: 'image/jpeg', name: 'a.jpg' })
    const id = name.split('/')[1]
    for (const root of ['_matrix', '_proto']) {
      const answer = await signed(`/${root}/federation/v1/media/download/${id}`)
      const [, boundary] = /^multipart\/mixed; boundary=(.*)$/.exec(answer.headers.get('content-type')!)!
      const part = 'Content-Type: image/jpeg\r\nContent-Disposition: inline; filename="a.jpg"'
      expect(answer.bytes.equals(multipart(part, image, boundary))).toBe(true)
      expect(answer.headers.get('content-length')).toBe(String(answer.bytes.length))
      const small = await signed(`/${root}/federation/v1/media/thumbnail/${id}?width=30&height=30`)
      expect(small.bytes.toString('latin1')).toContain('Content-Type: image/jpeg\r\n')
    }
  })

  test('that waits for many uploads has its other requests answered meanwhile', async () => {
    const made = await here.api.call('POST', '/_matrix/media/v1/create', { token: alice.token })
    const id = String(made.content_uri).split('/').at(-1)
    const waiting = Array.from({ length: 30 }, (_, turn) =>
      signed(`/_matrix/federation/v1/media/download/${id}?timeout_ms=20000&turn=${turn}`),
    )
    const query = `/_matrix/federation/v1/query/profile?user_id=${encodeURIComponent(alice.userId)}`
    expect((await signed(query)).status).toBe(200)
    const put = { method: 'PUT', token: alice.token, body: 'done' }
    await fetchFile(`${here.server.baseUrl}/_matrix/media/v3/upload/${here.name}/${id}`, put)
    for (const { bytes } of await Promise.all(waiting)) expect(bytes.toString()).toContain('\r\n\r\ndone\r\n')
  })

  test('gets nothing unsigned, and nothing of third servers', async () => {
    const uri = '/_matrix/federation/v1/media/download/abc'
    expect((await fetchFile(here.server.baseUrl + uri)).status).toBe(401)
    expect((await signed(uri)).body.errcode).toBe('M_NOT_FOUND')
    expect((await signed('/_matrix/federation/v1/media/download/..%2fx')).body.errcode).toBe('M_NOT_FOUND')
    expect((await signed(`/_matrix/federation/v1/media/thumbnail/abc?width=-1&height=1`)).status).toBe(400)
  })
})

describe('a hostile server', () => {
  const big = randomBytes(300_000)

  test.each<[string, number, string, TlsHandler]>([
    [
      'that has no such file',
      404,
      'M_NOT_FOUND',
      (_request, response) => {
        response.writeHead(404, { 'content-type': 'application/json' }).end('{"errcode":"M_NOT_FOUND"}')
      },
    ],
    [
      'that has not got it yet',
      504,
      'M_NOT_YET_UPLOADED',
      (_request, response) => {
        response.writeHead(504, { 'content-type': 'application/json' }).end('{"errcode":"M_NOT_YET_UPLOADED"}')
      },
    ],
    [
      'that knows no token of ours (73)',
      502,
      'M_UNKNOWN',
      (_request, response) => {
        response.writeHead(401, { 'content-type': 'application/json' }).end('{"errcode":"M_UNKNOWN_TOKEN"}')
      },
    ],
    [
      'with a file too large',
      502,
      'M_TOO_LARGE',
      (_request, response) => {
        wrapped(response, multipart('Content-Type: a/b', big))
      },
    ],
    [
      'with an endless file (69)',
      502,
      'M_TOO_LARGE',
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'multipart/mixed; boundary=gap' })
        response.write(multipart('Content-Type: a/b', '').subarray(0, -11))
        const timer = setInterval(() => response.write(big), 5)
        response.on('close', () => clearInterval(timer))
      },
    ],
    [
      'with an endless error (71)',
      502,
      'M_UNKNOWN',
      (_request, response) => {
        response.writeHead(500, { 'content-type': 'application/json' })
        const timer = setInterval(() => response.write(big), 5)
        response.on('close', () => clearInterval(timer))
      },
    ],
    ['without a boundary', 502, 'M_UNKNOWN', (_request, response) => wrapped(response, 'x', 'multipart/mixed')],
    ['with one part', 502, 'M_UNKNOWN', (_request, response) => wrapped(response, '--gap\r\n\r\n{}\r\n--gap--')],
    [
      'with half a part',
      502,
      'M_UNKNOWN',
      (_request, response) => {
        wrapped(response, multipart('Content-Type: a/b', 'half').subarray(0, -10))
      },
    ],
    ['with something else', 502, 'M_UNKNOWN', (_request, response) => wrapped(response, '<html>', 'text/html')],
    [
      'that breaks off',
      502,
      'M_UNKNOWN',
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'multipart/mixed; boundary=gap', 'content-length': '500' })
        response.write('--gap\r\n')
        response.socket?.destroySoon()
      },
    ],
    [
      'that sends us to a private address (81)',
      502,
      'M_UNKNOWN',
      (_request, response) => {
        wrapped(response, multipart('Location: https://10.1.2.3/secret', ''))
      },
    ],
    [
      'that sends us to the cloud’s own address (76)',
      502,
      'M_UNKNOWN',
      (_request, response) => {
        wrapped(response, multipart('Location: http://169.254.169.254/latest/meta-data', ''))
      },
    ],
    [
      'that sends us to a file of ours',
      502,
      'M_UNKNOWN',
      (_request, response) => {
        wrapped(response, multipart('Location: file:///etc/passwd', ''))
      },
    ],
    [
      'that sends us on itself',
      502,
      'M_UNKNOWN',
      (_request, response) => {
        response.writeHead(307, { location: `https://${stranger.name}/elsewhere` }).end()
      },
    ],
  ])('%s is answered with %i %s', async (_what, status, errcode, handler) => {
    say = handler
    const name = newName()
    const answer = await from(here, alice.token, name)
    expect([answer.status, answer.body.errcode]).toEqual([status, errcode])
    expect(left()).toEqual([])
  })

  test('is not asked again at once for what it does not have', async () => {
    say = (_request, response) => response.writeHead(404).end('{"errcode":"M_NOT_FOUND"}')
    const name = newName()
    for (let times = 0; times < 3; times++) expect((await from(here, alice.token, name)).status).toBe(404)
    expect(asked()).toHaveLength(1)
  })

  test('may send us to a place in the open, which hears nothing of us', async () => {
    say = ({ url }, response) => {
      if (url.startsWith('/_matrix/'))
        return wrapped(response, multipart(`Location: https://${stranger.name}/cdn/1`, ''))
      response.writeHead(200, { 'content-type': 'image/png' }).end('from afar')
    }
    const { bytes, headers } = await from(here, alice.token, newName())
    expect([bytes.toString(), headers.get('content-type')]).toEqual(['from afar', 'image/png'])
    expect(stranger.front.requests.at(-1)!.headers.authorization).toBeUndefined()
  })

  test('that lies about what a file is does not have it run in browsers (88)', async () => {
    const lie = 'Content-Type: image/svg+xml\r\nContent-Disposition: inline; filename="a\u202egpj.html"'
    say = (_request, response) => wrapped(response, multipart(lie, '<svg onload="alert(1)"/>'))
    const { headers } = await from(here, alice.token, newName())
    expect(headers.get('content-disposition')).toMatch(/^attachment; filename=/)
    expect(headers.get('content-disposition')).not.toContain('%E2%80%AE')
    expect(headers.get('content-security-policy')).toContain('sandbox')
  })

  test('that is slow keeps only few of our connections busy (R10)', async () => {
    const held: ServerResponse[] = []
    say = (_request, response) => void held.push(response)
    const asking = Array.from({ length: 20 }, () => from(here, alice.token, newName()))
    const other = await uploadFile(there.server.baseUrl, bob.token, 'quick')
    expect((await from(here, alice.token, other)).bytes.toString()).toBe('quick')
    expect(held.length).toBeLessThanOrEqual(4)
    say = (_request, response) => wrapped(response, multipart('Content-Type: a/b', 'late'))
    for (const response of held) wrapped(response, multipart('Content-Type: a/b', 'late'))
    for (const answer of await Promise.all(asking)) expect(answer.bytes.toString()).toBe('late')
  })
})
