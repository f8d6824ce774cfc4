import { setImmediate } from 'node:timers/promises'

/**
 * Spreads work over turns of the event loop: each call resolves in a later turn than the one before, so that what is done by the
 * hundred leaves room for everything else in between.
 */
export function createPace(): () => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  return () => {
    last = last.then(() => setImmediate())
    return last
  }
}
