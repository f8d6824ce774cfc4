import fc from 'fast-check'
import { expect, test } from 'vitest'
import { pauseAfter } from '../../src/domain/backoff.ts'

test('pauses after failures grow to their bound and are never shorter than the first, however often it fails', () => {
  const bounds = fc.record({
    firstMs: fc.integer({ min: 10, max: 60_000 }),
    longestMs: fc.integer({ min: 60_000, max: 9e7 }),
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e9 }), bounds, fc.nat(255), (failures, { firstMs, longestMs }, byte) => {
      const pause = pauseAfter(failures, { firstMs, longestMs }, { bytes: () => Buffer.of(byte) })
      const middle = Math.min(firstMs * 2 ** (failures - 1), longestMs)
      // Some wait longer than others; after twenty doublings nobody's pause grows.
      const least = Math.min(firstMs * 2 ** 20, middle)
      expect(pause).toBeGreaterThanOrEqual(Math.floor(0.75 * least))
      expect(pause).toBeLessThanOrEqual(Math.ceil(1.25 * middle))
    }),
  )
})
