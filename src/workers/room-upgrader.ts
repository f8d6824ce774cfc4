import type { Logger } from 'pino'
import type { Upgrades } from '../domain/rooms/act/upgrade/upgrades.ts'
import { startDueWork } from './due-work.ts'

/** Completes room upgrades that an earlier process began, or that failed. */
export const startRoomUpgrader = (upgrades: Pick<Upgrades, 'runAll'>, log: Logger) =>
  startDueWork({
    everyMs: 30_000,
    failure: 'room upgrades could not be read; they will be tried again',
    log,
    onWake: () => {},
    run: upgrades.runAll,
  })
