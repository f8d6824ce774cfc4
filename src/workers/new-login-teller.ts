import type { Logger } from 'pino'
import type { NewLoginTeller } from '../domain/new-logins/teller.ts'
import { startDueWork, untilNone } from './due-work.ts'

/** Tells people of logins on new devices as it becomes due. */
export const startNewLoginTeller = (teller: NewLoginTeller, log: Logger) =>
  startDueWork({
    everyMs: 30_000,
    failure: 'logins on new devices could not be read; it will be tried again',
    log,
    onWake: teller.onWake,
    run: untilNone(teller.tellDue),
  })
