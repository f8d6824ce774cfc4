import { randomBytes } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, type Api, openApi, register } from '../support/api.ts'
import { fetchFile, filesIn, uploadFile } from '../support/media.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { cpuMsOf } from '../support/slowness.ts'

let server: TestServer
let api: Api
let alice: Account

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
})
afterAll(async () => {
  await api.close()
  await server.close()
})

const draw = (width: number, height: number, channels: 3 | 4 = 3) =>
  sharp({ create: { width, height, channels, background: { r: 200, g: 40, b: 40, alpha: 0.5 } } })
const upload = (bytes: Uint8Array, type = 'image/png') => uploadFile(server.baseUrl, alice.token, bytes, { type })
const thumbnail = (name: string, query: string) =>
  fetchFile(`${server.baseUrl}/_matrix/client/v1/media/thumbnail/${name}?${query}`, { token: alice.token })
const about = async (name: string, query: string) => sharp((await thumbnail(name, query)).bytes).metadata()
const files = () => filesIn(`${server.config.data_dir}/media`).length
const refusal = async (name: string, query = 'width=30&height=30') => {
  const { status, body } = await thumbnail(name, query)
  return `${status} ${body?.errcode}`
}

describe('a thumbnail', () => {
  test.each([
    ['width=32&height=32&method=crop', 32, 32],
    ['width=90&height=90&method=crop', 96, 96],
    ['width=300&height=200&method=scale', 320, 160],
    ['width=64&height=32&method=crop', 96, 48],
    ['width=640&height=480', 640, 320],
    ['width=99999&height=99999&method=scale', 1000, 500],
  ])('for %s of a 1000 x 500 image is %i x %i', async (query, width, height) => {
    const name = await upload(await draw(1000, 500).png().toBuffer())
    const { bytes, headers } = await thumbnail(name, query)
    expect(await sharp(bytes).metadata()).toMatchObject({ width, height })
    expect(headers.get('content-disposition')).toMatch(/^inline; filename="thumbnail\.jpeg"$/)
    expect(headers.get('content-type')).toBe('image/jpeg')
  })

  test('is found at the older paths', async () => {
    const name = await upload(await draw(20, 10).png().toBuffer())
    for (const path of ['media/v3', 'media/r0', 'media/v1']) {
      const url = `${server.baseUrl}/_matrix/${path}/thumbnail/${name}?width=32&height=32`
      expect((await fetchFile(url, { token: alice.token })).status).toBe(200)
    }
  })

  test('is never larger than the image', async () => {
    const name = await upload(await draw(20, 10).png().toBuffer())
    expect(await about(name, 'width=800&height=600')).toMatchObject({ width: 20, height: 10 })
    expect(await about(name, 'width=96&height=96&method=crop')).toMatchObject({ width: 20, height: 10 })
  })

  test('of what can be seen through can be seen through', async () => {
    const name = await upload(await draw(100, 100, 4).png().toBuffer())
    expect(await about(name, 'width=32&height=32')).toMatchObject({ format: 'png', hasAlpha: true })
  })

  test('tells nothing of where and how a picture was taken, and stands upright', async () => {
    const picture = draw(60, 30)
      .withExif({ IFD0: { Copyright: 'secret' }, IFD3: { GPSLatitude: '51/1' } })
      .withMetadata({ orientation: 6 })
    const name = await upload(await picture.jpeg().toBuffer(), 'image/jpeg')
    const made = await about(name, 'width=96&height=96')
    expect(made).toMatchObject({ width: 30, height: 60 })
    expect([made.exif, made.icc, made.xmp]).toEqual([undefined, undefined, undefined])
  })

  test.each(['jpeg', 'png', 'gif', 'webp'] as const)('is made of a %s, whatever it is said to be', async (format) => {
    const name = await upload(await draw(100, 50).toFormat(format).toBuffer(), 'application/octet-stream')
    expect(await about(name, 'width=32&height=32')).toMatchObject({ width: 32, height: 16 })
  })

  test('is made of four colours for printers too', async () => {
    const name = await upload(await draw(100, 50).toColourspace('cmyk').jpeg().toBuffer())
    expect(await about(name, 'width=32&height=32')).toMatchObject({ width: 32, space: 'srgb' })
  })

  test.each(['gif', 'webp'] as const)('of a moving %s moves if that is wished, and else stands', async (format) => {
    const frames = await Promise.all(
      ['red', 'green', 'blue'].map((background) =>
        sharp({ create: { width: 80, height: 40, channels: 3, background } })
          .png()
          .toBuffer(),
      ),
    )
    const name = await upload(
      await sharp(frames, { join: { animated: true } })
        .toFormat(format)
        .toBuffer(),
    )
    const moving = await thumbnail(name, 'width=32&height=32&animated=true')
    expect(moving.headers.get('content-type')).toBe('image/webp')
    expect(await sharp(moving.bytes, { pages: -1 }).metadata()).toMatchObject({ pages: 3, width: 32, pageHeight: 16 })
    for (const query of ['width=32&height=32', 'width=32&height=32&animated=false']) {
      expect((await about(name, query)).pages ?? 1).toBe(1)
    }
  })

  test('is made once, however many ask at once, and kept', async () => {
    const before = files()
    const name = await upload(await draw(2000, 1000).negate().png().toBuffer())
    const same = await Promise.all(
      Array.from({ length: 20 }, (_, index) => thumbnail(name, `width=${100 + index}&height=90`)),
    )
    expect(new Set(same.map(({ bytes }) => bytes.toString('base64'))).size).toBe(1)
    expect(files()).toBe(before + 2)
    const etag = same[0]!.headers.get('etag')
    expect((await thumbnail(name, 'width=120&height=90')).headers.get('etag')).toBe(etag)
    expect(files()).toBe(before + 2)
  })
})

describe('no thumbnail', () => {
  test.each([
    ['a document', Buffer.from('%PDF-1.7')],
    ['nothing', Buffer.alloc(0)],
    ['noise', randomBytes(5_000)],
    [
      'a drawing that is a program (85)',
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script/></svg>'),
    ],
    ['PostScript (85)', Buffer.from('%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n')],
  ])('is made of %s', async (_what, bytes) => {
    expect(await refusal(await upload(bytes))).toBe('400 M_UNKNOWN')
  })

  test.each(['tiff', 'avif'] as const)('is made of a %s, which needs another decoder (85)', async (format) => {
    expect(await refusal(await upload(await draw(9, 9).toFormat(format).toBuffer()))).toBe('400 M_UNKNOWN')
  })

  test('is made of half an image', async () => {
    const whole = await sharp(randomBytes(300 * 300 * 3), { raw: { width: 300, height: 300, channels: 3 } })
      .png()
      .toBuffer()
    expect(await refusal(await upload(whole.subarray(0, whole.length / 2)))).toBe('400 M_UNKNOWN')
  })

  test('is made of a bomb of pixels, nor is it decoded (86)', async () => {
    const before = files()
    const took = await cpuMsOf(async () => {
      expect(await refusal(await upload(pngOf(30_000, 30_000)))).toBe('413 M_TOO_LARGE')
      expect(await refusal(await upload(pngOf(0x7fffffff, 0x7fffffff)))).toBe('413 M_TOO_LARGE')
    })
    expect(took).toBeLessThan(5_000)
    expect(files()).toBe(before + 2)
  })

  test('is made for a size that makes no sense', async () => {
    const name = await upload(await draw(9, 9).png().toBuffer())
    for (const query of [
      'width=0&height=1',
      'width=-1&height=1',
      'width=a&height=1',
      'width=1',
      'width=1&height=1&method=x',
      'width=1.5&height=1',
    ])
      expect(await refusal(name, query), query).toMatch(/^400 M_/)
  })

  test('of many broken images is in the way of a good one', async () => {
    const broken = await Promise.all(
      Array.from({ length: 30 }, () => upload(Buffer.concat([pngOf(50, 50).subarray(0, 60), randomBytes(99)]))),
    )
    const good = await upload(await draw(500, 500).png().toBuffer())
    const [made] = await Promise.all([thumbnail(good, 'width=96&height=96'), ...broken.map((name) => refusal(name))])
    expect(made.status).toBe(200)
  })
})

/** An image of so many pixels, all black, in few bytes. */
function pngOf(width: number, height: number): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([1, 0, 0, 0, 0], 8)
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data])
    const frame = Buffer.alloc(8)
    frame.writeUInt32BE(data.length, 0)
    frame.writeUInt32BE(crc32(body), 4)
    return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)])
  }
  const rows = deflateSync(Buffer.alloc(Math.min(height * (1 + Math.ceil(width / 8)), 5_000_000)))
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', rows), chunk('IEND', Buffer.alloc(0))])
}
