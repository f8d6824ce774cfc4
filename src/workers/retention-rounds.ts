import type { Logger } from 'pino'
import type { RetentionRounds } from '../domain/rooms/act/deletion/retention.ts'
import { startDueWork } from './due-work.ts'

/** Has messages removed whose time is over. */
export const startRetentionRounds = (rounds: RetentionRounds, log: Logger) =>
  startDueWork({
    everyMs: 10_000,
    failure: 'messages whose time is over could not be found; it will be tried again',
    log,
    onWake: () => {},
    run: rounds.run,
  })
