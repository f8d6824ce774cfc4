import { createCache } from '../../core/cache.ts'
import type { Clock } from '../clock.ts'
import { CALLERS_WITH_TOKENS, TOKENS_AHEAD_MS } from '../limits/cluster.ts'
import type { LimitName } from '../rate-limits.ts'

/**
 * Tokens of rate limits that the node that serves took out of its buckets for requests which this node answers. So the limit of a caller
 * is the same, however many nodes answer. What is not used in time is lost.
 */
export interface StandbyTokens {
  /** Whether there was a token; if not, whether to ask for some. One request of a caller asks, until it is answered. */
  take(limit: LimitName, key: string | number): 'taken' | 'ask' | 'none'
  /** A request that took one is passed on, and takes its token there. */
  giveBack(limit: LimitName, key: string | number): void
  /** What was asked for came, or a part of it. */
  grant(limit: LimitName, key: string | number, count: number): void
}

interface Held {
  left: number
  readonly until: number
}

export function createStandbyTokens({ clock }: { readonly clock: Clock }): StandbyTokens {
  const held = createCache<string, Held>(CALLERS_WITH_TOKENS)
  const nameOf = (limit: LimitName, key: string | number): string => `${limit} ${typeof key} ${key}`
  const hold = (name: string, left: number): void => void held.set(name, { left, until: clock.now() + TOKENS_AHEAD_MS })
  function heldNow(name: string): Held | undefined {
    const tokens = held.get(name)
    return tokens === undefined || tokens.until <= clock.now() ? undefined : tokens
  }
  return {
    take(limit, key) {
      const name = nameOf(limit, key)
      const tokens = heldNow(name)
      if (tokens === undefined) {
        hold(name, 0)
        return 'ask'
      }
      if (tokens.left === 0) return 'none'
      tokens.left--
      // The next one asks.
      if (tokens.left === 0) held.delete(name)
      return 'taken'
    },
    giveBack(limit, key) {
      const name = nameOf(limit, key)
      const tokens = heldNow(name)
      if (tokens === undefined) hold(name, 1)
      else tokens.left++
    },
    grant(limit, key, count) {
      const name = nameOf(limit, key)
      // Some may have been given back meanwhile.
      const left = count + (heldNow(name)?.left ?? 0)
      if (left > 0) hold(name, left)
      else held.delete(name)
    },
  }
}
