import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { GrowingBytes } from '../../src/http/growing-bytes.ts'

test.each([
  { name: 'a short body', length: 10_000, pieces: 7, most: 10_000 },
  { name: 'a long one in many pieces', length: 3_000_000, pieces: 41, most: 16 * 1024 * 1024 },
  { name: 'one piece longer than a step', length: 2_000_000, pieces: 1, most: 2_000_000 },
])('$name is what its pieces were, also after the memory was freed', ({ length, pieces, most }) => {
  const body = randomBytes(length)
  const bytes = new GrowingBytes(most)
  const size = Math.ceil(length / pieces)
  for (let at = 0; at < length; at += size) bytes.append(body.subarray(at, at + size))
  const taken = bytes.taken()
  bytes.free()
  expect(taken.equals(body)).toBe(true)
})
