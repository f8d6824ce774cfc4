import { ProtocolError } from '../../../core/errors.ts'
import type { Reader } from '../../../store/db/db.ts'
import { areInOneRoom } from '../../../store/rooms/mutual-rooms.ts'
import type { Rooms } from './rooms.ts'

/** Whether two users share a room. Some information about a user is only for such users. One query, however many rooms they are in. */
export function createSharedRoomCheck({ db }: { readonly db: Reader }): Rooms['mustShareRoom'] {
  return async (by, other) => {
    if (by.userId === other || (await areInOneRoom(db, by.userNid, other))) return
    throw new ProtocolError('M_FORBIDDEN', `You share no room with ${other}.`)
  }
}
