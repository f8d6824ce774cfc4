import type { Logger } from 'pino'
import type { InviteDeliveries } from '../domain/identity/deliveries.ts'
import { startDueWork, untilNone } from './due-work.ts'

/** Sends the invitations of the queue as they become due. */
export const startInviteDeliverer = (deliveries: InviteDeliveries, log: Logger) =>
  startDueWork({
    everyMs: 5_000,
    failure: 'the queue of invitations could not be read; it will be tried again',
    log,
    onWake: deliveries.onWake,
    run: untilNone(deliveries.deliverDue),
  })
