import fc from 'fast-check'
import sharp from 'sharp'
import { describe, expect, it, test } from 'vitest'
import { readByteRange } from '../../../src/core/media/byte-range.ts'
import {
  fileNameIn,
  readContentType,
  readFileName,
  writeDisposition,
} from '../../../src/core/media/content-disposition.ts'
import { readImageHeader } from '../../../src/core/media/image-header.ts'
import { thumbnailSizeFor } from '../../../src/core/media/thumbnail-size.ts'
import { readMxc, writeMxc } from '../../../src/core/mxc.ts'

describe('an mxc URI', () => {
  test.each(['mxc://example.org/abc_DEF-1', 'mxc://[::1]:8448/a', 'mxc://1.2.3.4/a'])('%s is one', (uri) => {
    expect(writeMxc(readMxc(uri)!)).toBe(uri)
  })

  test.each([
    ...[
      '',
      'mxc://',
      'mxc://example.org',
      'mxc://example.org/',
      'mxc:///a',
      'http://example.org/a',
      'MXC://example.org/a',
    ],
    ...[
      'mxc://example.org/..',
      'mxc://example.org/../../etc/passwd',
      'mxc://example.org/a/b',
      'mxc://example.org/a%2fb',
    ],
    ...['mxc://../a', 'mxc://ex ample/a', 'mxc://example.org/a?b', 'mxc://example.org/a#b', 'mxc://example.org/ä'],
    ...[`mxc://example.org/${'a'.repeat(256)}`, 'mxc://example.org/a\0', 'mxc://u@example.org/a', 7, null, undefined],
  ])('%j is none', (uri) => {
    expect(readMxc(uri)).toBeUndefined()
  })
})

describe("an image's header", () => {
  const draw = (width: number, height: number) => sharp({ create: { width, height, channels: 3, background: 'red' } })

  test.each(['jpeg', 'png', 'gif', 'webp'] as const)('says how large a %s is', async (format) => {
    const bytes = await draw(301, 77).toFormat(format).toBuffer()
    expect(readImageHeader(bytes)).toEqual({ type: `image/${format}`, width: 301, height: 77 })
  })

  it('says it of lossless and extended WebP and of progressive JPEG too', async () => {
    const size = { width: 301, height: 77 }
    expect(readImageHeader(await draw(301, 77).webp({ lossless: true }).toBuffer())).toMatchObject(size)
    const extended = draw(301, 77)
      .ensureAlpha(0.5)
      .withExif({ IFD0: { Copyright: 'x' } })
    expect(readImageHeader(await extended.webp().toBuffer())).toMatchObject(size)
    expect(readImageHeader(await draw(301, 77).jpeg({ progressive: true }).toBuffer())).toMatchObject(size)
  })

  test.each(['avif', 'tiff'] as const)('is not looked for in a %s', async (format) => {
    expect(readImageHeader(await draw(30, 7).toFormat(format).toBuffer())).toBeUndefined()
  })

  it('is no reason to fail or to go on for ever, whatever the bytes', async () => {
    const good = await Promise.all(
      (['jpeg', 'png', 'gif', 'webp'] as const).map((format) => draw(9, 9).toFormat(format).toBuffer()),
    )
    const spoiled = fc.tuple(fc.constantFrom(...good), fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 40 }))
    fc.assert(
      fc.property(spoiled, ([bytes, at, noise]) => {
        const copy = Buffer.from(bytes)
        copy.set(noise.subarray(0, Math.max(0, copy.length - (at % copy.length))), at % copy.length)
        readImageHeader(copy.subarray(0, copy.length - (at % 7)))
      }),
    )
  })
})

describe('the size of a thumbnail', () => {
  test.each([
    [1, 1, 'scale', 32, 32],
    [32, 32, 'crop', 32, 32],
    [33, 20, 'scale', 96, 96],
    [100, 100, 'scale', 320, 240],
    [100, 300, 'scale', 640, 480],
    [801, 10, 'scale', 1600, 1200],
    [9_999_999, 9_999_999, 'scale', 1600, 1200],
    [60, 60, 'crop', 96, 96],
    [64, 32, 'crop', 96, 48],
    [1, 9_999_999, 'crop', 200, 1600],
  ] as const)('%i x %i, %s, is %i x %i', (width, height, method, w, h) => {
    expect(thumbnailSizeFor({ width, height, method })).toEqual({ width: w, height: h, method })
  })

  it('is never smaller than what is wished for, up to the largest, and one of few', () => {
    const seen = new Set<string>()
    const side = fc.integer({ min: 1, max: 1600 })
    fc.assert(
      fc.property(
        side,
        fc.integer({ min: 1, max: 1200 }),
        fc.constantFrom('crop', 'scale'),
        (width, height, method) => {
          const size = thumbnailSizeFor({ width, height, method })
          seen.add(JSON.stringify(size))
          expect(size.width).toBeGreaterThanOrEqual(width)
          expect(size.height).toBeGreaterThanOrEqual(height)
        },
      ),
    )
    expect(seen.size).toBeLessThan(102)
  })
})

describe('a content type', () => {
  test.each([
    ['image/png', 'image/png'],
    ['text/plain', 'text/plain; charset=utf-8'],
    ['text/html; charset="iso-8859-1"', 'text/html; charset="iso-8859-1"'],
    [undefined, 'application/octet-stream'],
    ['image', 'application/octet-stream'],
    ['image/png\r\nset-cookie: a=b', 'application/octet-stream'],
    [`a/${'b'.repeat(300)}`, 'application/octet-stream'],
  ])('%j is %j', (given, read) => {
    expect(readContentType(given)).toBe(read)
  })
})

describe('a disposition', () => {
  test.each([
    ['image/png', 'a.png', 'inline; filename="a.png"'],
    ['image/PNG; a=b', undefined, 'inline'],
    ['text/html', 'a.html', 'attachment; filename="a.html"'],
    ['image/svg+xml', undefined, 'attachment'],
    ['application/pdf', 'Müller "1".pdf', `attachment; filename*=UTF-8''M%C3%BCller%20%221%22.pdf`],
    ['text/plain; charset=utf-8', "it's (1)*.txt", `inline; filename*=UTF-8''it%27s%20%281%29%2a.txt`],
  ])('of %j named %j is %j', (type, name, header) => {
    expect(writeDisposition(type, name)).toBe(header)
  })

  it('tells any name that is safe, and no other', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.nat({ max: 0xffff }).map((code) => String.fromCharCode(code)) }), (name) => {
        const safe = readFileName(name)
        const header = writeDisposition('image/png', safe)
        expect(header).toMatch(/^[ -~]+$/)
        expect(fileNameIn(header)).toBe(safe)
      }),
    )
    expect(readFileName('a\r\nb\u202egpj.exe\0')).toBe('abgpj.exe')
    expect(readFileName(' \n')).toBeUndefined()
    expect(readFileName('x'.repeat(1000))).toHaveLength(255)
  })

  test.each([
    [`attachment; filename="a \\"b\\".txt"`, 'a "b".txt'],
    ['inline; filename=plain.txt', 'plain.txt'],
    [`inline; filename="old"; filename*=utf-8'en'new%20one`, 'new one'],
    [`inline; filename="old"; filename*=utf-8''%zz`, 'old'],
    ['inline', undefined],
    [undefined, undefined],
  ])('%j names %j', (header, name) => {
    expect(fileNameIn(header)).toBe(name)
  })
})

describe('a range', () => {
  test.each([
    ['bytes=0-4', { first: 0, last: 4 }],
    ['bytes=5-', { first: 5, last: 9 }],
    ['bytes=5-100', { first: 5, last: 9 }],
    ['bytes=-3', { first: 7, last: 9 }],
    ['bytes=-30', { first: 0, last: 9 }],
    ['bytes=10-', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=5-4', undefined],
    ['bytes=0-1,3-4', undefined],
    ['bytes=-', undefined],
    ['lines=0-1', undefined],
    [undefined, undefined],
  ])('%j of ten bytes is %j', (header, range) => {
    expect(readByteRange(header, 10)).toEqual(range)
  })
})
