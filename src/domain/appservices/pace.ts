import type { Clock } from '../clock.ts'

/** The order and rate at which application services get transactions. */
export interface Pace {
  /** Resolves when it is the caller's turn. Turns are taken one after another, with the process's other work in between. */
  turn(): Promise<void>
  /**
   * The length of a beat now, in ms. A busy service gets one transaction a beat, and all services get theirs at the same time, so that
   * their rows share a commit.
   */
  beatMs(): number
}

const BEAT_MS = 100
/** A longer beat means fewer and larger transactions, when the process is very busy. */
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
