import type { Logger } from 'pino'
import type { RoomDeletions } from '../domain/rooms/act/deletion/deletions.ts'
import { startDueWork } from './due-work.ts'

/** Performs the room deletions that operators have requested. */
export const startRoomDeleter = (deletions: RoomDeletions, log: Logger) =>
  startDueWork({
    everyMs: 5_000,
    failure: 'a room could not be removed; it will be tried again',
    log,
    onWake: deletions.onWake,
    run: deletions.runAll,
  })
