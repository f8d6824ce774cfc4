import { createCache } from '../../core/cache.ts'
import type { BoundMetrics } from '../bound-metrics.ts'
import type { Clock } from '../clock.ts'
import { MAX_REWRITTEN_BODY_BYTES, MAX_VAIN_REWRITES, VAIN_REWRITES_FOR_MS } from '../limits.ts'

/**
 * If a signature does not fit a body's bytes, the body is encoded as canonical JSON and checked again. A forged signature makes us do
 * that in vain. Such work is limited for each address and for all of them; an address that was right lately does not wait for the others.
 */
export interface RewriteBudget {
  /** Runs the check and returns its result. Returns false without running it if the budget is used up or the body is too long. */
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
      // Counted before the check, because a body that is no JSON throws.
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
