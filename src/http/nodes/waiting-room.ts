import { FORWARD_RETRIES_PER_MS, FORWARD_RETRY_MAX_MS, FORWARD_RETRY_MS } from '../../domain/limits/cluster.ts'

/** Where requests wait while no node serves. */
export interface WaitingRoom {
  /** Resolves when it is time to try again: the later, the more wait, and at once when another node serves. */
  wait(): Promise<void>
  /** Everything that waits tries again at once. */
  wake(): void
}

export function createWaitingRoom(): WaitingRoom {
  const waiting = new Set<() => void>()
  return {
    wait: () =>
      new Promise((resolve) => {
        const leave = (): void => {
          clearTimeout(timer)
          waiting.delete(leave)
          resolve()
        }
        waiting.add(leave)
        const timer = setTimeout(leave, pauseMs(waiting.size))
      }),
    wake() {
      for (const leave of [...waiting]) leave()
    },
  }
}

/** How long each of so many waits: thousands of held syncs must not keep busy the node that is about to serve. */
export function pauseMs(count: number): number {
  return Math.min(FORWARD_RETRY_MAX_MS, Math.max(FORWARD_RETRY_MS, count / FORWARD_RETRIES_PER_MS))
}
