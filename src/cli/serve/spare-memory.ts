import { giveBackMemory } from './give-back.ts'

/** How often the server checks whether a load is over. */
const LOOK_EVERY_MS = 10_000
/**
 * A server that is less busy than this share of the time, so many checks in a row, has no load any more. One that wakes a thousand syncs
 * once a second is hardly busier: what it gave back it would take again at the next message, which would reach its readers later.
 */
const QUIET = 0.1
const QUIET_LOOKS = 3
/** Less is not worth the pause and the collections after it, which come because the engine's space for new objects is small again. */
const WORTH_BYTES = 40 * 1024 * 1024
/** After an attempt with little gain it tries again after at most this many checks, because memory may have been freed meanwhile. */
const MOST_LOOKS_BETWEEN = 60

export interface SparingOptions {
  readonly everyMs?: number
  readonly giveBack?: () => void
  /** The share of the time since the last call in which the process was busy. */
  readonly utilization?: () => number
}

/** Returns memory to the system once a load is over. It tries less and less often while it gains nothing. */
export function spareMemory(resident: () => number, options: SparingOptions = {}): { stop(): void } {
  const { everyMs = LOOK_EVERY_MS, giveBack = giveBackMemory, utilization = meter() } = options
  let smallest = resident()
  let left = smallest
  let looksBetween = 1
  let looksToWait = 0
  let quietLooks = 0
  const timer = setInterval(() => {
    quietLooks = utilization() > QUIET ? 0 : quietLooks + 1
    const now = resident()
    smallest = Math.min(smallest, now)
    left = Math.min(left, now)
    if (looksToWait > 0) looksToWait--
    const isDue = now >= left + WORTH_BYTES || looksToWait === 0
    if (quietLooks < QUIET_LOOKS || now < smallest + WORTH_BYTES || !isDue) return
    giveBack()
    left = resident()
    looksBetween = now - left < WORTH_BYTES / 2 ? Math.min(looksBetween * 2, MOST_LOOKS_BETWEEN) : 1
    looksToWait = looksBetween
  }, everyMs).unref()
  return { stop: () => clearInterval(timer) }
}

function meter(): () => number {
  let before = performance.eventLoopUtilization()
  return () => {
    const current = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(current, before)
    before = current
    return utilization
  }
}
