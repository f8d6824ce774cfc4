import type { Logger } from 'pino'
import type { Deactivation } from '../domain/accounts/deactivation.ts'

/** Has deactivated users leave their rooms, and goes on after a restart. */
export interface DeactivationRunner {
  close(): Promise<void>
}

const EVERY_MS = 10_000

export function startDeactivationRunner(deps: {
  readonly deactivation: Deactivation
  readonly log: Logger
}): DeactivationRunner {
  const { deactivation, log } = deps
  let closed = false
  let running: Promise<void> | undefined
  let again = false

  async function work(): Promise<void> {
    do {
      again = false
      try {
        while (!closed && (await deactivation.continueDue()) > 0);
      } catch (error) {
        log.warn({ err: error }, 'deactivations could not be read; they will be tried again')
      }
    } while (again && !closed)
  }

  /** One round at a time: a call during a round is one more round after it. */
  function start(): void {
    again = true
    if (closed || running !== undefined) return
    running = work().finally(() => {
      running = undefined
    })
  }

  const timer = setInterval(start, EVERY_MS).unref()
  deactivation.onWake(start)
  start()

  return {
    async close() {
      closed = true
      clearInterval(timer)
      await running
    },
  }
}
