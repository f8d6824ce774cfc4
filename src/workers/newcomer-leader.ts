import type { Logger } from 'pino'
import type { Newcomers } from '../domain/accounts/upkeep/newcomers.ts'
import { startDueWork, untilNone } from './due-work.ts'

/** Leads new accounts into the rooms of the server. */
export const startNewcomerLeader = (newcomers: Newcomers, log: Logger) =>
  startDueWork({
    everyMs: 500,
    failure: 'newcomers could not be read; they will be led into rooms later',
    log,
    onWake: () => {},
    run: untilNone(newcomers.continueDue),
  })
