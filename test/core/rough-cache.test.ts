import { expect, test } from 'vitest'
import { RoughCache } from '../../src/core/cache.ts'

test('a rough cache keeps what is used, and never more than it may', () => {
  const cache = new RoughCache<string, number>(10)
  cache.set('used', 1)
  cache.set('once', 2)
  for (let other = 0; other < 100; other++) {
    cache.set(`other ${other}`, other)
    expect(cache.get('used')).toBe(1)
    expect(cache.size).toBeLessThanOrEqual(10)
  }
  expect(cache.get('once')).toBeUndefined()
  expect(cache.get('other 99')).toBe(99)
  expect(cache.get('other 10')).toBeUndefined()
})

test('what is deleted or written again in a rough cache is so wherever it was', () => {
  const cache = new RoughCache<string, number>(4)
  for (const key of ['a', 'b', 'c']) cache.set(key, 1)
  cache.set('a', 2)
  expect(cache.get('a')).toBe(2)
  cache.delete('b')
  cache.delete('c')
  expect([cache.get('b'), cache.get('c'), cache.size]).toEqual([undefined, undefined, 1])
  cache.clear()
  expect([cache.get('a'), cache.size]).toEqual([undefined, 0])
})
