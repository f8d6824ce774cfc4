import type { Logger } from 'pino'
import type { UserRedactions } from '../domain/moderation/user-redactions.ts'
import { startDueWork } from './due-work.ts'

/** Redacts what operators have asked to redact. */
export const startUserRedactor = (redactions: UserRedactions, log: Logger) =>
  startDueWork({
    everyMs: 5_000,
    failure: 'what users said could not be redacted; it will be tried again',
    log,
    onWake: redactions.onWake,
    run: redactions.runAll,
  })
