import { expect, test } from 'vitest'
import { releaseBytes } from '../../src/http/release-bytes.ts'

const MEGABYTE = 1 << 20

test('bytes that are released are free at once, without a garbage collection', () => {
  const pieces = Array.from({ length: 64 }, () => Buffer.alloc(MEGABYTE, 1))
  const held = process.memoryUsage().arrayBuffers
  for (const piece of pieces) releaseBytes(piece)
  const after = process.memoryUsage().arrayBuffers
  expect(pieces.map(({ length }) => length)).toEqual(pieces.map(() => 0))
  expect(held - after).toBeGreaterThan(63 * MEGABYTE)
})

test('a piece of memory that others use too stays as it is', () => {
  const whole = Buffer.alloc(1_000, 7)
  releaseBytes(whole.subarray(10, 20))
  releaseBytes(Buffer.from('short ones share a pool'))
  expect(whole.equals(Buffer.alloc(1_000, 7))).toBe(true)
  releaseBytes(new Uint8Array(new SharedArrayBuffer(10)))
})
