import { ProtocolError } from '../../../core/errors.ts'
import type { Room } from './room.ts'
import type { Viewer } from './viewer.ts'

/** What users hear of rooms that they are not in, whether there is one of that id or not. */
export const notInRoom = (): ProtocolError => new ProtocolError('M_FORBIDDEN', 'You are not in this room.')

/**
 * Before anything is said of a room, or of others in it, to somebody who wants to change it.
 *
 * @throws ProtocolError `M_FORBIDDEN` for who is not in the room
 */
export function mustBeMember(room: Room | undefined, { userNid }: Pick<Viewer, 'userNid'>): Room {
  if (!room?.localMembers.has(userNid)) throw notInRoom()
  return room
}
