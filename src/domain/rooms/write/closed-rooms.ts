import { ProtocolError } from '../../../core/errors.ts'
import type { RoomId } from '../../../core/ids.ts'
import type { Appender } from './append.ts'

/** Rooms that are about to be removed. Their users can no longer write in them. */
export interface ClosedRooms {
  close(roomId: RoomId): void
  reopen(roomId: RoomId): void
  /** @throws ProtocolError `M_FORBIDDEN` */
  mustBeOpen(roomId: RoomId): void
  /** An appender that refuses closed rooms with `M_FORBIDDEN`. */
  guard(appender: Appender): Appender
}

export function createClosedRooms(): ClosedRooms {
  const closed = new Set<RoomId>()

  function mustBeOpen(roomId: RoomId): void {
    if (closed.has(roomId)) throw new ProtocolError('M_FORBIDDEN', 'This room is being removed from this server.')
  }

  return {
    mustBeOpen,
    close: (roomId) => void closed.add(roomId),
    reopen: (roomId) => void closed.delete(roomId),
    guard: (appender) => ({
      ...appender,
      async append(roomId, plan, transaction) {
        mustBeOpen(roomId)
        return appender.append(roomId, plan, transaction)
      },
    }),
  }
}
