import { giveBackMemory } from './give-back.ts'

/** How often the server checks whether a load is over. */
const LOOK_EVERY_MS = 10_000
/** A server that is less busy than this share of the time has time for it. */
const QUIET = 0.1
/** Less is not worth the pause and the collections after it, which come because the engine's space for new objects is small again. */
const WORTH_BYTES = 40 * 1024 * 1024
/** After an attempt with little gain it tries again after at most this many checks, because memory may have been freed meanwhile. */
const MOST_LOOKS_BETWEEN = 60

export interface SparingOptions {
  readonly everyMs?: number
  readonly giveBack?: () => void
}

/** Returns memory to the system once a load is over. It tries less and less often while it gains nothing. */
export function spareMemory(resident: () => number, options: SparingOptions = {}): { stop(): void } {
  const { everyMs = LOOK_EVERY_MS, giveBack = giveBackMemory } = options
  let smallest = resident()
  let left = smallest
  let looksBetween = 1
  let looksToWait = 0
  let before = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const current = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(current, before)
    before = current
    const now = resident()
    smallest = Math.min(smallest, now)
    left = Math.min(left, now)
    if (looksToWait > 0) looksToWait--
    const isDue = now >= left + WORTH_BYTES || looksToWait === 0
    if (utilization > QUIET || now < smallest + WORTH_BYTES || !isDue) return
    giveBack()
    left = resident()
    looksBetween = now - left < WORTH_BYTES / 2 ? Math.min(looksBetween * 2, MOST_LOOKS_BETWEEN) : 1
    looksToWait = looksBetween
  }, everyMs).unref()
  return { stop: () => clearInterval(timer) }
}
