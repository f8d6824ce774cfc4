import type { Config } from '../config/schema.ts'
import { ProtocolError } from '../core/errors.ts'
import type { Clock } from './clock.ts'
import type { RateLimitOverrides } from './rate-limit-overrides.ts'

export type LimitName = Exclude<keyof Config['rate_limits'], 'enabled'>

/** Token buckets in memory. Each has a named kind and belongs to one user, address or account. */
export interface RateLimits {
  /**
   * Takes one token; an empty bucket throws 429 `M_LIMIT_EXCEEDED` with `retry_after_ms`. A numeric key is a user, who may have limits of
   * their own.
   */
  take(name: LimitName, key: string | number): void
  /**
   * Takes tokens for requests that another node will answer, as long as the bucket stays half full.
   *
   * @returns how many were taken, at most `count`
   */
  takeAhead(name: LimitName, key: string | number, count: number): number
}

/** The most keys of one kind that are remembered. The one that was idle for longest is dropped first. */
const MAX_KEYS = 20_000

export function createRateLimits(deps: {
  readonly config: Pick<Config, 'rate_limits'>
  readonly clock: Clock
  readonly overrides: Pick<RateLimitOverrides, 'get'>
}): RateLimits {
  const { overrides } = deps
  // A bucket is stored as the time at which it will be full again.
  const kinds = new Map<LimitName, Map<string | number, number>>()

  function bucketsOf(name: LimitName): Map<string | number, number> {
    const known = kinds.get(name)
    if (known !== undefined) return known
    const made = new Map<string | number, number>()
    kinds.set(name, made)
    return made
  }

  /** A new entry goes to the end of the map, so the map's order is the order of last use. */
  function remember(buckets: Map<string | number, number>, key: string | number, fullAt: number): void {
    buckets.delete(key)
    buckets.set(key, fullAt)
    if (buckets.size <= MAX_KEYS) return
    const [oldest] = buckets.keys()
    if (oldest !== undefined) buckets.delete(oldest)
  }

  /** The bucket of a key; undefined where nothing is limited. */
  function bucketOf(name: LimitName, key: string | number) {
    const limits = deps.config.rate_limits
    if (!limits.enabled) return undefined
    const own = typeof key === 'number' ? overrides.get(key) : undefined
    if (own?.per_second === 0) return undefined
    const { per_second, burst } = own !== undefined && name === 'message' ? own : limits[name]
    const tokenMs = 1000 / per_second
    const now = deps.clock.now()
    const buckets = bucketsOf(name)
    const emptyAt = now + burst * tokenMs
    // If the clock was set back, a bucket must not become emptier than empty.
    const fullAt = Math.min(Math.max(buckets.get(key) ?? now, now), emptyAt)
    return { buckets, tokenMs, burst, emptyAt, fullAt }
  }

  return {
    take(name, key) {
      const bucket = bucketOf(name, key)
      if (bucket === undefined) return
      const { buckets, tokenMs, emptyAt, fullAt } = bucket
      const waitMs = fullAt + tokenMs - emptyAt
      remember(buckets, key, waitMs > 0 ? fullAt : fullAt + tokenMs)
      if (waitMs <= 0) return
      throw new ProtocolError('M_LIMIT_EXCEEDED', 'Too many requests. Wait a little before the next.', {
        extra: { retry_after_ms: Math.ceil(waitMs) },
      })
    },
    takeAhead(name, key, count) {
      const bucket = bucketOf(name, key)
      if (bucket === undefined) return count
      const { buckets, tokenMs, burst, emptyAt, fullAt } = bucket
      const spare = Math.floor((emptyAt - fullAt) / tokenMs - burst / 2)
      const taken = Math.max(0, Math.min(count, spare))
      remember(buckets, key, fullAt + taken * tokenMs)
      return taken
    },
  }
}
