import { getRestoredRooms } from '../../../store/backup/restore-epochs.ts'
import type { Reader } from '../../../store/db/db.ts'

/**
 * Rooms of which other servers may have events of ours that were lost with a restore. The next event of ours in such a room waits until
 * those servers were asked, or for a moment: without their events it would begin a branch of its own.
 */
export interface RestoredRooms {
  /** Resolves once others were asked; undefined for a room that does not wait. */
  asking(roomNid: number): Promise<void> | undefined
  /** Sets who asks others. It resolves when it has asked, and never rejects. */
  askBy(ask: (roomNid: number) => Promise<void>): void
}

export async function openRestoredRooms(db: Reader): Promise<RestoredRooms> {
  const waiting = new Set(await getRestoredRooms(db))
  const running = new Map<number, Promise<void>>()
  let ask: ((roomNid: number) => Promise<void>) | undefined

  return {
    asking(roomNid) {
      if (waiting.size === 0 || ask === undefined || !waiting.has(roomNid)) return undefined
      const known = running.get(roomNid)
      if (known !== undefined) return known
      const asked = ask(roomNid).finally(() => {
        waiting.delete(roomNid)
        running.delete(roomNid)
      })
      running.set(roomNid, asked)
      return asked
    },
    askBy(by) {
      ask = by
    },
  }
}
