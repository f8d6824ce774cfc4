import { ProtocolError } from '../../../core/errors.ts'
import { membershipOf } from '../../../core/event/content.ts'
import type { UserRooms } from '../../sync/user-rooms.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Rooms } from './rooms.ts'

/** Whether two users share a room. Some information about a user is only for such users. */
export function createSharedRoomCheck(parts: {
  readonly userRooms: UserRooms
  readonly registry: Pick<RoomRegistry, 'getByNid'>
}): Rooms['mustShareRoom'] {
  return async (by, other) => {
    if (by.userId === other) return
    for (const [roomNid, { membership }] of await parts.userRooms.of(by.userNid)) {
      if (membership !== 'join') continue
      const room = await parts.registry.getByNid(roomNid)
      if (membershipOf(await room.stateEvent('m.room.member', other)) === 'join') return
    }
    throw new ProtocolError('M_FORBIDDEN', `You share no room with ${other}.`)
  }
}
