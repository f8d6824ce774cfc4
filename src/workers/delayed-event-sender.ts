import type { Logger } from 'pino'
import type { DelayedEvents } from '../domain/delayed-events/delayed-events.ts'
import { startDueWork } from './due-work.ts'

/** Sends delayed events when they are due. Between two that are due, a round costs a look at the clock. */
export const startDelayedEventSender = (delayedEvents: Pick<DelayedEvents, 'sendDue'>, log: Logger) =>
  startDueWork({
    everyMs: 200,
    failure: 'delayed events could not be sent; they will be tried again',
    log,
    onWake: () => {},
    run: delayedEvents.sendDue,
  })
