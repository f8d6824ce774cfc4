import fc from 'fast-check'
import { expect, test } from 'vitest'
import { boundaryOf, MultipartError, partsOf } from '../../src/outbound/multipart.ts'

async function* cut(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length]!
    yield bytes.subarray(at, at + size)
    at += size
  }
}

async function read(text: string | Buffer, boundary = 'b', sizes: readonly number[] = [1_000]) {
  const parts: { headers: Record<string, string>; body: string }[] = []
  for await (const { headers, body } of partsOf(cut(Buffer.from(text), sizes), boundary)) {
    const chunks: Buffer[] = []
    for await (const chunk of body) chunks.push(chunk)
    parts.push({ headers: Object.fromEntries(headers), body: Buffer.concat(chunks).toString('latin1') })
  }
  return parts
}

test('two parts are read, wherever the pieces are cut', async () => {
  const bytes = fc.uint8Array({ maxLength: 200 })
  await fc.assert(
    fc.asyncProperty(bytes, bytes, fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }), async (a, b, sizes) => {
      const text = Buffer.concat([
        Buffer.from('preamble\r\n--bound\r\nContent-Type: application/json\r\n\r\n'),
        ...[a, Buffer.from('\r\n--bound\r\n\r\n'), b, Buffer.from('\r\n--bound--\r\nepilogue')],
      ])
      expect(await read(text, 'bound', sizes)).toEqual([
        { headers: { 'content-type': 'application/json' }, body: Buffer.from(a).toString('latin1') },
        { headers: {}, body: Buffer.from(b).toString('latin1') },
      ])
    }),
  )
})

test('the first boundary may stand at the very beginning', async () => {
  expect(await read('--b\r\nA: 1\r\na: 2\r\nno header\r\n\r\nx\r\n--b--')).toEqual([{ headers: { a: '1' }, body: 'x' }])
})

test.each([
  ['without a boundary', 'nothing here'],
  ['that ends within a header', '--b\r\nA: 1'],
  ['that ends within a part', '--b\r\n\r\nabc'],
  ['that ends after a boundary', '--b\r\n\r\nabc\r\n--b'],
  ['with an endless header', `--b\r\nA: ${'x'.repeat(100_000)}`],
])('a body %s is an error', async (_what, text) => {
  await expect(read(text, 'b', [777])).rejects.toBeInstanceOf(MultipartError)
})

test.each([
  ['multipart/mixed; boundary=abc', 'abc'],
  ['Multipart/Mixed;charset=utf-8; Boundary="a b"', 'a b'],
  ['multipart/mixed', undefined],
  ['multipart/form-data; boundary=abc', undefined],
  [`multipart/mixed; boundary="${'x'.repeat(71)}"`, undefined],
  [undefined, undefined],
])('%j has the boundary %j', (type, boundary) => {
  expect(boundaryOf(type)).toBe(boundary)
})
