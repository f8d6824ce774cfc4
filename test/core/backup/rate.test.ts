import { expect, test } from 'vitest'
import { createRate } from '../../../src/core/backup/rate.ts'

const BOUNDS = { least: 10, first: 40, most: 1_000 }
const rateAfter = (atRest: readonly number[], ...atWork: (readonly number[])[]) => {
  const rate = createRate(BOUNDS)
  rate.noteAtRest(atRest)
  for (const delays of atWork) rate.noteAtWork(delays)
  return rate
}

test('a rate falls while others wait longer than at rest, down to the least, and rises otherwise, up to the most', () => {
  expect(rateAfter([4, 4], [9, 9]).bytesPerSecond).toBeLessThan(BOUNDS.first)
  expect(rateAfter([4, 4], [4, 5]).bytesPerSecond).toBeGreaterThan(BOUNDS.first)
  expect(rateAfter([4], ...Array.from({ length: 50 }, () => [90])).bytesPerSecond).toBe(BOUNDS.least)
  expect(rateAfter([4], ...Array.from({ length: 50 }, () => [4])).bytesPerSecond).toBe(BOUNDS.most)
})

test('others may wait as long as they do without the backup, also where that is long', () => {
  expect(rateAfter([90, 110], [100, 110]).bytesPerSecond).toBeGreaterThan(BOUNDS.first)
})

test('what is usual follows the load', () => {
  const rate = rateAfter([2])
  for (let rest = 0; rest < 20; rest++) rate.noteAtRest([40])
  rate.noteAtWork([40])
  expect(rate.bytesPerSecond).toBeGreaterThan(BOUNDS.first)
})

test('without measurements the rate stays', () => {
  expect(rateAfter([], [90]).bytesPerSecond).toBe(BOUNDS.first)
  expect(rateAfter([4], []).bytesPerSecond).toBe(BOUNDS.first)
})
