import type { Logger } from 'pino'
import type { Database } from '../../store/db.ts'
import { saveCheckpoint } from '../../store/state.ts'
import type { Room } from './room.ts'

/** Writes a room's whole state now and then, so that loading it never replays more than a bounded stretch of log. */
export interface Checkpoints {
  /** Called after each commit. */
  consider(room: Room): void
}

const LEAST_CHANGES = 1000

export function createCheckpoints({ db, log }: { db: Database; log: Logger }): Checkpoints {
  return {
    consider(room) {
      const { chain, seq, state } = room.committed
      if (seq - room.checkpointSeq < Math.max(LEAST_CHANGES, state.size / 2)) return
      room.checkpointSeq = seq
      db.tx((tx) => saveCheckpoint(tx, room.nid, { chain, seq }, state)).catch((error) => {
        // The log is complete without it; the next change tries again at the next interval.
        log.warn({ err: error, room: room.id }, 'a state checkpoint could not be written')
      })
    },
  }
}
