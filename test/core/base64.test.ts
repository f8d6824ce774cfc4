import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeBase64, decodeBase64Strict, encodeBase64, encodeBase64Url } from '../../src/core/base64.ts'

test('every writer is read back by every reader that should', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (array) => {
      const bytes = Buffer.from(array)
      const standard = encodeBase64(bytes)
      const url = encodeBase64Url(bytes)
      expect(standard).toMatch(/^[A-Za-z0-9+/]*$/)
      expect(url).toMatch(/^[A-Za-z0-9_-]*$/)
      for (const text of [standard, url, bytes.toString('base64')]) expect(decodeBase64(text)).toEqual(bytes)
      expect(decodeBase64Strict(standard)).toEqual(bytes)
    }),
  )
})

test.each(['A', 'Zg===', 'Zm 9v', 'Zm9v\n', 'Zm9v!', '+-+-', 'é', 'Zg=a'])('%j is not base64', (text) => {
  expect(decodeBase64(text)).toBeUndefined()
  expect(decodeBase64Strict(text)).toBeUndefined()
})

test('strict readers refuse what their writer does not write', () => {
  expect(decodeBase64Strict('Zg==')).toBeUndefined()
  expect(decodeBase64Strict('Zh')).toBeUndefined()
  expect(decodeBase64Strict('__-_')).toBeUndefined()
  expect(decodeBase64('Zh')).toEqual(Buffer.from('f'))
})
