import { createCache } from '../core/cache.ts'
import type { Clock } from './clock.ts'

export interface Bucket {
  /** How many tokens a bucket holds when it is full. */
  readonly burst: number
  readonly perSecond: number
}

/** Token buckets from which a caller takes several tokens at a time. */
export interface Spending {
  /** Takes as many tokens as there are, up to `atMost`, and returns how many. */
  take(key: string | number, atMost: number, bucket: Bucket): number
  /** Puts tokens back. */
  giveBack(key: string | number, count: number, bucket: Bucket): void
  /** Milliseconds until the bucket holds this many tokens; 0 if it does now. */
  waitMs(key: string | number, count: number, bucket: Bucket): number
}

/** @param max how many buckets are remembered. The one that was idle for longest is dropped first, and so is full again */
export function createSpending({ clock, max }: { readonly clock: Clock; readonly max: number }): Spending {
  /** When each bucket will be full again. */
  const fullAt = createCache<string | number, number>(max)

  /** Milliseconds until a bucket is full. If the clock was set back, it must not become emptier than empty. */
  function untilFull(key: string | number, { burst, perSecond }: Bucket): number {
    const ms = (fullAt.get(key) ?? 0) - clock.now()
    return Math.min(Math.max(ms, 0), (burst * 1_000) / perSecond)
  }

  return {
    take(key, atMost, bucket) {
      const { burst, perSecond } = bucket
      const ms = untilFull(key, bucket)
      const given = Math.min(atMost, Math.floor(burst - (ms * perSecond) / 1_000 + 1e-6))
      if (given > 0) fullAt.set(key, clock.now() + ms + (given * 1_000) / perSecond)
      return given
    },
    giveBack(key, count, bucket) {
      const ms = untilFull(key, bucket) - (count * 1_000) / bucket.perSecond
      if (ms > 0) fullAt.set(key, clock.now() + ms)
      else fullAt.delete(key)
    },
    waitMs(key, count, bucket) {
      const { burst, perSecond } = bucket
      return Math.max(0, Math.ceil(untilFull(key, bucket) + ((count - burst) * 1_000) / perSecond))
    },
  }
}
