import { describe, expect, test } from 'vitest'
import { createRewriteBudget } from '../../src/domain/federation/rewrite-budget.ts'
import { MAX_REWRITTEN_BODY_BYTES, MAX_VAIN_REWRITES, VAIN_REWRITES_FOR_MS } from '../../src/domain/limits.ts'

const HALF_BYTES = MAX_VAIN_REWRITES.ofAddress / 2

function watched() {
  let now = 1_000_000
  const budget = createRewriteBudget({ clock: { now: () => now }, bounds: { reached: () => refused++ } })
  let [checks, refused] = [0, 0]
  return {
    checks: () => checks,
    refused: () => refused,
    later: (ms: number) => {
      now += ms
    },
    ask: (address: string, isRight: boolean | 'not json', bytes = HALF_BYTES) => {
      const check = () => {
        checks++
        if (isRight === 'not json') throw new Error('not JSON')
        return isRight
      }
      return budget.allow(bytes, () => address, check)
    },
  }
}

describe('A1: bodies that are written anew to check a signature', () => {
  test('A1: are so for nothing only so often for one address, whatever is wrong with them', () => {
    const { ask, checks, later, refused } = watched()
    expect(ask('192.0.2.1', false)).toBe(false)
    expect(() => ask('192.0.2.1', 'not json')).toThrow('not JSON')
    expect(ask('192.0.2.1', true)).toBe(false)
    expect([checks(), refused()]).toEqual([2, 1])
    expect(ask('192.0.2.2', true)).toBe(true)
    later(VAIN_REWRITES_FOR_MS)
    expect(ask('192.0.2.1', true)).toBe(true)
  })

  test('A1: are so for nothing only so often in all, which stops nobody who was right before', () => {
    const { ask, checks, refused } = watched()
    expect(ask('198.51.100.1', true)).toBe(true)
    const strangers = (2 * MAX_VAIN_REWRITES.inAll) / HALF_BYTES
    for (let index = 0; index < strangers; index++) ask(`203.0.113.${index}`, false)
    expect([checks(), refused()]).toEqual([1 + strangers / 2, strangers / 2])
    expect(ask('203.0.113.250', true)).toBe(false)
    expect(ask('198.51.100.1', true)).toBe(true)
  })

  test('A1: are never so beyond a length', () => {
    const { ask, checks, refused } = watched()
    expect(ask('192.0.2.1', true, MAX_REWRITTEN_BODY_BYTES + 1)).toBe(false)
    expect([checks(), refused()]).toEqual([0, 1])
  })
})
