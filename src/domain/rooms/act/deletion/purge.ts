import type { Database } from '../../../../store/db/db.ts'
import type { Ledger } from '../../../../store/db/ledger.ts'
import { type DeletionRow, noteRemoved } from '../../../../store/rooms/room-deletions.ts'
import { deleteHead, type PurgedRoom, purgeSome, sweepLate } from '../../../../store/rooms/room-purge.ts'
import type { Clock } from '../../../clock.ts'
import type { UserRooms } from '../../../sync/user-rooms.ts'
import type { EventCache } from '../../room/event-cache.ts'
import type { RoomRegistry } from '../../room/registry.ts'

/** Removes every row about a room, a little at a time, while nobody can find the room. */
export interface Purge {
  /** Removes the room from memory. */
  forget(room: PurgedRoom): void
  /** Continues where an earlier run stopped. False when `isOver` stopped it again. */
  run(deletion: DeletionRow, isOver: () => boolean): Promise<boolean>
}

export interface PurgeParts {
  readonly db: Database
  readonly ledger: Ledger
  readonly clock: Clock
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly userRooms: UserRooms
  /** Resolves when everything in the queue of the event writer has been written or refused. */
  idle(): Promise<void>
}

const ROWS_AT_ONCE = 2_000
/** The server keeps transaction ids for a little less than this. */
export const TRANSACTION_IDS_KEPT_MS = 48 * 3_600_000

export function createPurge(parts: PurgeParts): Purge {
  const { db, clock, registry, userRooms, events } = parts

  function forget({ roomNid, roomId }: PurgedRoom): void {
    registry.remove(roomNid, roomId)
    userRooms.removed(roomNid)
  }

  return {
    forget,
    async run({ deletion_id, room_nid: roomNid, room_id: roomId }, isOver) {
      const room = { roomNid, roomId }
      forget(room)
      await db.tx((tx) => deleteHead(tx, room))
      await parts.idle()
      await parts.ledger.append(async () => {})
      const recent = clock.now() - TRANSACTION_IDS_KEPT_MS
      for (let removed = 1; removed > 0; ) {
        if (isOver()) return false
        removed = await db.tx(async (tx) => {
          const rows = await purgeSome(tx, room, ROWS_AT_ONCE, recent)
          await noteRemoved(tx, deletion_id, rows)
          return rows
        })
      }
      await db.tx((tx) => sweepLate(tx, room))
      // The same events may come again from other servers, with other numbers.
      events.forgetAll()
      return true
    },
  }
}
