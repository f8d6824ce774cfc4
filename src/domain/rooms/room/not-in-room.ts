import { ProtocolError } from '../../../core/errors.ts'
import type { Room } from './room.ts'
import type { Viewer } from './viewer.ts'

/** The answer to users about rooms that they are not in. It is the same whether such a room exists or not. */
export const notInRoom = (): ProtocolError => new ProtocolError('M_FORBIDDEN', 'You are not in this room.')

/**
 * Checks that a user is in a room, before an error can reveal anything about the room or its members.
 *
 * @throws ProtocolError `M_FORBIDDEN` for a user who is not in the room
 */
export function mustBeMember(room: Room | undefined, { userNid }: Pick<Viewer, 'userNid'>): Room {
  if (!room?.localMembers.has(userNid)) throw notInRoom()
  return room
}
