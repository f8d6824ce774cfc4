import { setTimeout as delay } from 'node:timers/promises'
import { type Mxc, writeMxc } from '../../core/mxc.ts'

/**
 * Wakes those who wait for an upload. This is a hint: another process may have got the upload, so a waiter also checks from time to time.
 */
export interface Arrivals {
  announce(mxc: Mxc): void
  /** Resolves with the upload, or after the timeout. */
  next(mxc: Mxc, timeoutMs: number): Promise<void>
  /** How many wait. */
  waiting(): number
}

export function createReceivingServices(): Arrivals {
  const waiters = new Map<string, Set<AbortController>>()
  let waiting = 0
  return {
    announce(mxc) {
      for (const controller of waiters.get(writeMxc(mxc)) ?? []) controller.abort()
    },
    async next(mxc, timeoutMs) {
      const key = writeMxc(mxc)
      const controller = new AbortController()
      const all = waiters.get(key) ?? new Set()
      waiters.set(key, all.add(controller))
      waiting += 1
      await delay(timeoutMs, undefined, { signal: controller.signal }).catch(() => {})
      waiting -= 1
      all.delete(controller)
      if (all.size === 0) waiters.delete(key)
    },
    waiting: () => waiting,
  }
}
