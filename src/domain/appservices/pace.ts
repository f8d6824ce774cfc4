import type { Clock } from '../clock.ts'

/** How application services take turns, and how often. */
export interface Pace {
  /** Resolves when one's turn has come: one after another, with what else this process has to do in between. */
  turn(): Promise<void>
  /**
   * How long a beat is now. A service that is busy is sent what has come once a beat, all services at the same time: what is written
   * down of them shares a commit.
   */
  beatMs(): number
}

const BEAT_MS = 100
/** Fewer and larger transactions, while this process has hardly time for anything else. */
const LONG_BEAT_MS = 2 * BEAT_MS
const LITTLE_TIME = 0.8
const LOOK_EVERY_MS = 500

export function createPace(clock: Clock): Pace {
  let turns = Promise.resolve()
  let beatMs = BEAT_MS
  let before = performance.eventLoopUtilization()
  let lookedAt = 0

  return {
    turn() {
      turns = turns.then(() => new Promise((resolve) => setImmediate(resolve)))
      return turns
    },
    beatMs() {
      const now = clock.now()
      if (Math.abs(now - lookedAt) < LOOK_EVERY_MS) return beatMs
      const current = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(current, before)
      beatMs = utilization > LITTLE_TIME ? LONG_BEAT_MS : BEAT_MS
      before = current
      lookedAt = now
      return beatMs
    },
  }
}
