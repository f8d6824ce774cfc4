import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { createRateLimits } from '../../src/domain/rate-limits.ts'

function limitsOf(bucket: { per_second: number; burst: number }, enabled = true) {
  const { config } = loadConfig({ values: { rate_limits: { enabled, message: bucket } }, directory: '/' })
  const clock = { at: 1_000_000, now: () => clock.at }
  const limits = createRateLimits({ config, clock })
  const isRefused = (key: string | number): number => {
    try {
      limits.take('message', key)
      return 0
    } catch (error) {
      return (error as { extra: { retry_after_ms: number } }).extra.retry_after_ms
    }
  }
  return { clock, isRefused }
}

describe('a token bucket', () => {
  it('gives its burst, then as fast as it fills', () => {
    const { clock, isRefused } = limitsOf({ per_second: 2, burst: 3 })
    expect([1, 2, 3].map(() => isRefused('a'))).toEqual([0, 0, 0])
    expect(isRefused('a')).toBe(500)
    clock.at += 499
    expect(isRefused('a')).toBe(1)
    clock.at += 1
    expect(isRefused('a')).toBe(0)
    expect(isRefused('a')).toBe(500)
    clock.at += 3_600_000
    expect([1, 2, 3, 4].map(() => isRefused('a') > 0)).toEqual([false, false, false, true])
  })

  it('is one per key, and a number is not its text', () => {
    const { isRefused } = limitsOf({ per_second: 1, burst: 1 })
    expect([isRefused('1'), isRefused(1), isRefused('2')]).toEqual([0, 0, 0])
    expect(isRefused('1')).toBeGreaterThan(0)
  })

  it('gains nothing while the clock goes backwards', () => {
    const { clock, isRefused } = limitsOf({ per_second: 1, burst: 1 })
    expect(isRefused('a')).toBe(0)
    clock.at -= 60_000
    expect(isRefused('a')).toBe(1000)
    clock.at += 1000
    expect(isRefused('a')).toBe(0)
  })

  it('is forgotten when 20,000 others were used since', () => {
    const { isRefused } = limitsOf({ per_second: 0.001, burst: 1 })
    isRefused('first')
    for (let key = 0; key < 19_999; key++) isRefused(key)
    expect(isRefused('first')).toBeGreaterThan(0)
    for (let key = 0; key < 20_000; key++) isRefused(`other ${key}`)
    expect(isRefused('first')).toBe(0)
  })

  it('does not exist where limits are off', () => {
    const { isRefused } = limitsOf({ per_second: 0.001, burst: 1 }, false)
    expect([1, 2, 3].map(() => isRefused('a'))).toEqual([0, 0, 0])
  })
})
