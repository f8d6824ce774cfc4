import { createCache } from '../core/cache.ts'
import type { Clock } from './clock.ts'

export interface Bucket {
  /** What is there to begin with, and at most. */
  readonly burst: number
  readonly perSecond: number
}

/** Token buckets from which several are taken at a time. */
export interface Spending {
  /** Takes as many as there are, up to a number, and gives how many. */
  take(key: string | number, atMost: number, bucket: Bucket): number
  /** Undoes a taking. */
  giveBack(key: string | number, count: number, bucket: Bucket): void
  /** How long it is until so many are there. 0 where they are. Milliseconds. */
  waitMs(key: string | number, count: number, bucket: Bucket): number
}

/** @param max buckets that are remembered; the one that was idle longest is full again first */
export function createSpending({ clock, max }: { readonly clock: Clock; readonly max: number }): Spending {
  /** When each will be full again. */
  const fullAt = createCache<string | number, number>(max)

  /** How long it is until a bucket is full. A clock that was set back must not leave it emptier than empty. */
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
