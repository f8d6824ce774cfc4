import { getRestoredRooms } from '../../../store/backup/restore-epochs.ts'
import type { Reader } from '../../../store/db/db.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Appender } from './append.ts'

/**
 * Rooms of which other servers may have events of ours that were lost with a restore. The next event of ours in such a room waits until
 * those servers were asked, or for a moment: without their events it would begin a branch of its own.
 */
export interface RestoredRooms {
  /** Resolves once others were asked; undefined for a room that does not wait. */
  asking(roomNid: number): Promise<void> | undefined
  /** Sets who asks others. It resolves when it has asked, and never rejects. */
  askBy(ask: (roomNid: number) => Promise<void>): void
  /** Makes writes in such rooms wait. */
  guard(appender: Appender): Appender
}

export async function openRestoredRooms(deps: {
  readonly db: Reader
  readonly registry: Pick<RoomRegistry, 'get'>
}): Promise<RestoredRooms> {
  const waiting = new Set(await getRestoredRooms(deps.db))
  const running = new Map<number, Promise<void>>()
  let ask: ((roomNid: number) => Promise<void>) | undefined

  function asking(roomNid: number): Promise<void> | undefined {
    if (ask === undefined || !waiting.has(roomNid)) return undefined
    const known = running.get(roomNid)
    if (known !== undefined) return known
    const asked = ask(roomNid).finally(() => {
      waiting.delete(roomNid)
      running.delete(roomNid)
    })
    running.set(roomNid, asked)
    return asked
  }

  return {
    asking,
    askBy(by) {
      ask = by
    },
    guard: (appender) => ({
      ...appender,
      append(roomId, plan, transaction) {
        if (waiting.size === 0) return appender.append(roomId, plan, transaction)
        const asked = deps.registry.get(roomId).then((room) => room && asking(room.nid))
        return asked.then(() => appender.append(roomId, plan, transaction))
      },
    }),
  }
}
