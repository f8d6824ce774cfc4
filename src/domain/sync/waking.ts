import { WAKING_SLICE_MS } from '../limits.ts'

export type Wake = () => void

/**
 * Sends wake-ups in slices of a few milliseconds, with other work in between. What a woken sync does at once counts towards its slice.
 * Groups take turns, so that the few who wait in one room need not wait for the thousands of another.
 */
export interface Waking {
  /** Adds those to wake for one reason, as they are now. */
  add(wakes: Iterable<Wake>): void
  /** Starts, unless it is running. */
  run(): void
}

interface Group {
  readonly wakes: readonly Wake[]
  next: number
}

/** How many of a group wake before the next group has its turn. */
const OF_A_GROUP = 4
/**
 * Wake-ups per slice: at first, at least and at most. Answers that are made together are also sent together, which is cheaper for both
 * sides.
 */
const AT_FIRST = 16
const AT_LEAST = 4
const AT_MOST = 128

export function createWaking(sliceMs = WAKING_SLICE_MS): Waking {
  const groups: Group[] = []
  let atOnce = AT_FIRST
  let running = false

  function take(): Wake[] {
    const taken: Wake[] = []
    while (taken.length < atOnce) {
      const group = groups.shift()
      if (!group) break
      const upTo = group.next + Math.min(OF_A_GROUP, atOnce - taken.length)
      taken.push(...group.wakes.slice(group.next, upTo))
      group.next = upTo
      if (upTo < group.wakes.length) groups.push(group)
    }
    return taken
  }

  /** Chooses the next size: as many as would have fitted into this slice, and at most twice as many, since the next ones may cost more. */
  function adapt(woken: number, tookMs: number): void {
    if (woken < atOnce && tookMs < sliceMs) return
    const fitting = Math.floor((woken * sliceMs) / Math.max(tookMs, 0.1))
    atOnce = Math.min(Math.max(fitting, AT_LEAST), 2 * atOnce, AT_MOST)
  }

  /** Between these two callbacks, only the promises that the wake-ups settle are processed. */
  function slice(): void {
    let woken = 0
    let begun = 0
    setImmediate(() => {
      begun = performance.now()
      const wakes = take()
      woken = wakes.length
      for (const wake of wakes) wake()
    })
    setImmediate(() => {
      adapt(woken, performance.now() - begun)
      if (groups.length > 0) slice()
      else running = false
    })
  }

  return {
    add(some) {
      const wakes = [...some]
      if (wakes.length > 0) groups.push({ wakes, next: 0 })
    },
    run() {
      if (running) return
      running = true
      slice()
    },
  }
}
