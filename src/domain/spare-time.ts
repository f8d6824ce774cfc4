import { setTimeout as pause } from 'node:timers/promises'

const LOOK_EVERY_MS = 20
/** How much of the time work may take. */
interface Pace {
  /** The share of time in which the event loop works, from which on requests need it. */
  readonly busy: number
  /** Rest for each millisecond of work while requests need the event loop. */
  readonly restForWork: number
}
/** A twentieth of the time. */
const USUAL: Pace = { busy: 0.3, restForWork: 19 }
/** For work that follows all messages: a single sender, for whom the process waits most of the time, is not to notice it either. */
export const IN_NO_HURRY: Pace = { busy: 0.1, restForWork: 39 }
/** For the pieces of a large batch, after which there is a longer rest. */
export const BETWEEN_SLICES: Pace = { busy: 0.1, restForWork: 1 }
const LONGEST_REST_MS = 1_000
/** How long after its start a part leaves the processor and the database to the requests that waited for the start. */
const AFTER_START_MS = 1_000

/**
 * Rests after a batch of work that can wait: shortly while the process is idle, longer while it is busy, so that requests hardly notice.
 *
 * @param workedMs how long the batch took
 * @throws DOMException `AbortError` when the signal is given
 */
export async function restAfterWork(workedMs: number, signal: AbortSignal, pace = USUAL): Promise<void> {
  const until = performance.now() + Math.min(workedMs * pace.restForWork, LONGEST_REST_MS)
  for (;;) {
    const before = performance.eventLoopUtilization()
    await pause(LOOK_EVERY_MS, undefined, { signal, ref: false })
    const { utilization } = performance.eventLoopUtilization(before)
    if (utilization < pace.busy || performance.now() >= until) return
  }
}

/** Begins, shortly after a start, work that nobody waits for. */
export function beginAfterStart(begin: () => void): void {
  setTimeout(begin, AFTER_START_MS).unref()
}
