import { setTimeout as pause } from 'node:timers/promises'

const LOOK_EVERY_MS = 20
/** The share of time in which the event loop works, from which on requests need it. */
const BUSY = 0.3
/** Rest for each millisecond of work while requests need the event loop: work takes a twentieth of the time. */
const REST_FOR_WORK = 19
const LONGEST_REST_MS = 1_000
/** How long after its start a part leaves the processor and the database to the requests that waited for the start. */
const AFTER_START_MS = 1_000

/**
 * Rests after a batch of work that can wait: shortly while the process is idle, longer while it is busy, so that requests hardly notice.
 *
 * @param workedMs how long the batch took
 * @throws DOMException `AbortError` when the signal is given
 */
export async function restAfterWork(workedMs: number, signal: AbortSignal): Promise<void> {
  const until = performance.now() + Math.min(workedMs * REST_FOR_WORK, LONGEST_REST_MS)
  for (;;) {
    const before = performance.eventLoopUtilization()
    await pause(LOOK_EVERY_MS, undefined, { signal, ref: false })
    const { utilization } = performance.eventLoopUtilization(before)
    if (utilization < BUSY || performance.now() >= until) return
  }
}

/** Begins, shortly after a start, work that nobody waits for. */
export function beginAfterStart(begin: () => void): void {
  setTimeout(begin, AFTER_START_MS).unref()
}
