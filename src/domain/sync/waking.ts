import { WAKING_SLICE_MS } from '../limits.ts'

export type Wake = () => void

/**
 * Gives wake-ups in slices of a few milliseconds, between which others get their turn; what a woken sync does at once is counted too.
 * Groups take turns, so that the few who wait in one room do not stand behind the thousands of another.
 */
export interface Waking {
  /** Those who are to be woken for one reason, as they are now. */
  add(wakes: Iterable<Wake>): void
  /** Begins, unless it is at it. */
  run(): void
}

interface Group {
  readonly wakes: readonly Wake[]
  next: number
}

/** Of a group, one after the other, before the time is looked at. */
const AT_ONCE = 4
/** Steps of one slice that are planned ahead; those that come after its time do nothing. */
const STEPS = 64

export function createWaking(sliceMs = WAKING_SLICE_MS): Waking {
  const groups: Group[] = []
  let left = 0
  let running = false

  function step(): void {
    const group = groups.shift()
    if (!group) return
    const some = group.wakes.slice(group.next, group.next + AT_ONCE)
    group.next += some.length
    left -= some.length
    if (group.next < group.wakes.length) groups.push(group)
    for (const wake of some) wake()
  }

  /** The promises that a step settles are looked after before the next step begins: its time is known by then. */
  function slice(): void {
    if (left === 0) {
      running = false
      return
    }
    let begun: number | undefined
    const steps = Math.min(STEPS, left)
    for (let index = 1; index <= steps; index++) {
      setImmediate(() => {
        begun ??= performance.now()
        if (performance.now() - begun < sliceMs) step()
        if (index === steps) slice()
      })
    }
  }

  return {
    add(some) {
      const wakes = [...some]
      if (wakes.length === 0) return
      groups.push({ wakes, next: 0 })
      left += wakes.length
    },
    run() {
      if (running) return
      running = true
      step()
      slice()
    },
  }
}
