import type { Logger } from 'pino'
import type { Archives } from '../domain/oauth/archive/archives.ts'
import { startDueWork } from './due-work.ts'

/** Makes the archives that people asked for, and continues after a restart. */
export const startArchiveMaker = (archives: Archives, log: Logger) =>
  startDueWork({
    everyMs: 60_000,
    failure: 'archives of people could not be made; it will be tried again',
    log,
    onWake: archives.onWake,
    run: archives.work,
  })
