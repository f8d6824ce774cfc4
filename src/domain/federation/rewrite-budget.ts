import { createCache } from '../../core/cache.ts'
import type { BoundMetrics } from '../bound-metrics.ts'
import type { Clock } from '../clock.ts'
import { MAX_REWRITTEN_BODY_BYTES, MAX_VAIN_REWRITES, VAIN_REWRITES_FOR_MS } from '../limits.ts'

/**
 * Bodies that are not the canonical JSON which was signed are written anew to be checked, and whoever made up a signature has that
 * done for nothing. What was done for nothing counts, for an address and for all of them; who has been right is not made to wait
 * for the others.
 */
export interface RewriteBudget {
  /** Has the check made, and gives what it gives; false without making it where the budget is spent or the body too long. */
  allow(bytes: number, addressKey: () => string, check: () => boolean): boolean
}

/** Addresses that were right lately. */
const MAX_REMEMBERED = 5_000

export function createRewriteBudget({
  clock,
  bounds,
}: {
  readonly clock: Clock
  readonly bounds: BoundMetrics
}): RewriteBudget {
  const right = createCache<string, true>(MAX_REMEMBERED)
  let vain = new Map<string, number>()
  let vainInAll = 0
  let since = 0

  function refused(): false {
    bounds.reached('rewritten body')
    return false
  }

  return {
    allow(bytes, addressKey, check) {
      if (bytes > MAX_REWRITTEN_BODY_BYTES) return refused()
      const now = clock.now()
      if (now - since >= VAIN_REWRITES_FOR_MS || now < since) {
        vain = new Map()
        vainInAll = 0
        since = now
      }
      const key = addressKey()
      const ofThis = vain.get(key) ?? 0
      if (ofThis >= MAX_VAIN_REWRITES.ofAddress) return refused()
      if (vainInAll >= MAX_VAIN_REWRITES.inAll && !right.has(key)) return refused()
      // Counted before: what is no JSON at all throws.
      vain.set(key, ofThis + bytes)
      vainInAll += bytes
      if (!check()) return false
      vain.set(key, ofThis)
      vainInAll -= bytes
      right.set(key, true)
      return true
    },
  }
}
