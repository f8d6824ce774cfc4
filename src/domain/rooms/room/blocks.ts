import { ProtocolError } from '../../../core/errors.ts'
import type { RoomId } from '../../../core/ids.ts'
import type { Database } from '../../../store/db/db.ts'
import { blockRoom, findBlocker, unblockRoom } from '../../../store/rooms/blocked-rooms.ts'
import type { Clock } from '../../clock.ts'

/** Rooms that users of this server may neither join nor be invited to by other users of this server. */
export interface RoomBlocks {
  /** Who blocked the room; undefined when it is not blocked. */
  blockerOf(roomId: RoomId): Promise<string | undefined>
  /** Also works for rooms that this server does not know. */
  set(by: string, roomId: RoomId, isBlocked: boolean): Promise<void>
  /** @throws ProtocolError `M_FORBIDDEN` */
  mustBeFree(roomId: RoomId): Promise<void>
}

export function createRoomBlocks({ db, clock }: { readonly db: Database; readonly clock: Clock }): RoomBlocks {
  return {
    blockerOf: (roomId) => findBlocker(db, roomId),
    set: (by, roomId, isBlocked) =>
      db.tx((tx) => (isBlocked ? blockRoom(tx, roomId, by, clock.now()) : unblockRoom(tx, roomId))),
    async mustBeFree(roomId) {
      if ((await findBlocker(db, roomId)) === undefined) return
      throw new ProtocolError('M_FORBIDDEN', 'This room is blocked on this server.')
    },
  }
}
