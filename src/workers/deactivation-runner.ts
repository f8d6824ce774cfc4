import type { Logger } from 'pino'
import type { Deactivation } from '../domain/accounts/deactivation.ts'
import { startDueWork, untilNone } from './due-work.ts'

/** Makes deactivated users leave their rooms, and continues after a restart. */
export const startDeactivationRunner = (deactivation: Deactivation, log: Logger) =>
  startDueWork({
    everyMs: 10_000,
    failure: 'deactivations could not be read; they will be tried again',
    log,
    onWake: deactivation.onWake,
    run: untilNone(deactivation.continueDue),
  })
