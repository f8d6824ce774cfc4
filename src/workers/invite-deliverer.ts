import type { Logger } from 'pino'
import type { InviteDeliveries } from '../domain/identity/deliveries.ts'

/** Sends the invitations of the queue as they become due. */
export interface InviteDeliverer {
  close(): Promise<void>
}

const EVERY_MS = 5_000

export function startInviteDeliverer(deps: {
  readonly deliveries: InviteDeliveries
  readonly log: Logger
}): InviteDeliverer {
  const { deliveries, log } = deps
  let closed = false
  let running: Promise<void> | undefined
  let again = false

  async function work(): Promise<void> {
    do {
      again = false
      try {
        while (!closed && (await deliveries.deliverDue()) > 0);
      } catch (error) {
        log.warn({ err: error }, 'the queue of invitations could not be read; it will be tried again')
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
  deliveries.onWake(start)
  start()

  return {
    async close() {
      closed = true
      clearInterval(timer)
      await running
    },
  }
}
