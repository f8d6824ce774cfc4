import type { Logger } from 'pino'
import type { RoomDeletions } from '../domain/rooms/act/deletion/deletions.ts'
import { startDueWork } from './due-work.ts'

/** Removes the rooms that operators want removed. */
export const startRoomDeleter = (deletions: RoomDeletions, log: Logger) =>
  startDueWork({
    everyMs: 5_000,
    failure: 'a room could not be removed; it will be tried again',
    log,
    onWake: deletions.onWake,
    run: deletions.runAll,
  })
