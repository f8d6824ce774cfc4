import { createCache } from '../../core/cache.ts'
import { CALLERS_WITH_TOKENS, TOKENS_AHEAD_MS } from '../limits/cluster.ts'
import type { LimitName } from '../rate-limits.ts'

/**
 * Tokens of rate limits that the node that serves took out of its buckets for requests which this node answers. So the limit of a caller
 * is the same, however many nodes answer. What is not used in time is lost.
 */
export interface StandbyTokens {
  /** False if there is none. */
  take(limit: LimitName, key: string | number): boolean
  grant(limit: LimitName, key: string | number, count: number): void
}

export function createStandbyTokens(): StandbyTokens {
  const held = createCache<string, { left: number }>(CALLERS_WITH_TOKENS, { ttl: TOKENS_AHEAD_MS })
  const nameOf = (limit: LimitName, key: string | number): string => `${limit} ${typeof key} ${key}`
  return {
    take(limit, key) {
      const tokens = held.get(nameOf(limit, key))
      if (tokens === undefined || tokens.left === 0) return false
      tokens.left--
      return true
    },
    grant(limit, key, count) {
      if (!(count > 0)) return
      const name = nameOf(limit, key)
      const left = held.get(name)?.left ?? 0
      held.set(name, { left: left + count })
    },
  }
}
