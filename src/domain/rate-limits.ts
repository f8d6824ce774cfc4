import type { Config } from '../config/schema.ts'
import { ProtocolError } from '../core/errors.ts'
import type { Clock } from './clock.ts'

export type LimitName = Exclude<keyof Config['rate_limits'], 'enabled'>

/** Buckets in memory; each is one of a named kind for one user, address or account. */
export interface RateLimits {
  /** Takes one token; an empty bucket throws 429 `M_LIMIT_EXCEEDED` with `retry_after_ms`. */
  take(name: LimitName, key: string | number): void
}

interface Bucket {
  tokens: number
  at: number
}

/** No kind remembers more keys than this; the one that was idle longest is dropped first. */
const MAX_KEYS = 20_000

export function createRateLimits(deps: {
  readonly config: Pick<Config, 'rate_limits'>
  readonly clock: Clock
}): RateLimits {
  const limits = deps.config.rate_limits
  if (!limits.enabled) return { take: () => {} }
  const kinds = new Map<LimitName, Map<string | number, Bucket>>()

  function bucketOf(name: LimitName, key: string | number, now: number): Bucket {
    let buckets = kinds.get(name)
    if (buckets === undefined) {
      buckets = new Map()
      kinds.set(name, buckets)
    }
    const bucket = buckets.get(key) ?? { tokens: limits[name].burst, at: now }
    // Moved to the end, so that the map's order is the order of last use.
    buckets.delete(key)
    buckets.set(key, bucket)
    if (buckets.size > MAX_KEYS) {
      const [oldest] = buckets.keys()
      if (oldest !== undefined) buckets.delete(oldest)
    }
    return bucket
  }

  return {
    take(name, key) {
      const { per_second, burst } = limits[name]
      const now = deps.clock.now()
      const bucket = bucketOf(name, key, now)
      bucket.tokens = Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) / 1000) * per_second)
      bucket.at = now
      if (bucket.tokens < 1) {
        const retryAfterMs = Math.ceil(((1 - bucket.tokens) / per_second) * 1000)
        throw new ProtocolError('M_LIMIT_EXCEEDED', 'Too many requests. Wait a little before the next.', {
          extra: { retry_after_ms: retryAfterMs },
        })
      }
      bucket.tokens -= 1
    },
  }
}
