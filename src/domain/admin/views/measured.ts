import type { Clock } from '../../clock.ts'

/** Measures at most once in a while: all who ask meanwhile get the same answer. One that failed is tried again by the next who asks. */
export function measuredEvery<T>(everyMs: number, clock: Clock, measure: () => Promise<T>): () => Promise<T> {
  let last: Promise<T> | undefined
  let measuredAt = Number.NEGATIVE_INFINITY
  return () => {
    if (last !== undefined && clock.now() - measuredAt < everyMs) return last
    measuredAt = clock.now()
    const measuring = measure()
    measuring.catch(() => {
      if (last === measuring) last = undefined
    })
    last = measuring
    return measuring
  }
}
