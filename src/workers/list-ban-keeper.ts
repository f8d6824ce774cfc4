import type { Logger } from 'pino'
import type { ListBans } from '../domain/moderation/list-bans.ts'
import { startDueWork } from './due-work.ts'

/** Bans from rooms whom policy lists ban. */
export const startListBanKeeper = (bans: ListBans, log: Logger) =>
  startDueWork({
    everyMs: 60_000,
    failure: 'whom policy lists ban could not be put out of rooms; it will be tried again',
    log,
    onWake: bans.onWake,
    run: bans.runAll,
  })
