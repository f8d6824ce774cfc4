import type { Logger } from 'pino'
import type { AccountTerms } from '../domain/admin/account-terms.ts'
import { startDueWork } from './due-work.ts'

/** Locks the accounts whose time is over. */
export const startAccountExpirer = (terms: AccountTerms, log: Logger) =>
  startDueWork({
    everyMs: 30_000,
    failure: 'accounts whose time is over could not be locked; it will be tried again',
    log,
    onWake: terms.onWake,
    run: terms.lockExpired,
  })
