import type { Logger } from 'pino'
import type { HistoryPurges } from '../domain/rooms/act/deletion/history-purges.ts'
import { startDueWork } from './due-work.ts'

/** Removes the history that operators have asked to remove. */
export const startHistoryPurger = (purges: HistoryPurges, log: Logger) =>
  startDueWork({
    everyMs: 5_000,
    failure: 'history of a room could not be removed; it will be tried again',
    log,
    onWake: purges.onWake,
    run: purges.runAll,
  })
