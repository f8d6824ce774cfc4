import type { RoomId } from '../../../core/ids.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Readable, RoomAccess } from '../room/room-access.ts'
import { wholeRoom } from '../room/whole-room.ts'

export interface WholeStateParts {
  readonly access: RoomAccess
  readonly registry: Pick<RoomRegistry, 'getByNid'>
}

/**
 * A room whose whole state is requested. In a room with partial state, this waits for the resync.
 *
 * @throws ProtocolError as {@link RoomAccess.mustReadState}; 503 `M_UNKNOWN` when it takes too long
 */
export async function readWholeState(
  { access, registry }: WholeStateParts,
  by: Requester,
  roomId: RoomId,
): Promise<Readable> {
  const readable = await access.mustReadState(by, roomId)
  if (!readable.room.partialState?.lacksMembers) return readable
  await wholeRoom(registry, readable.room)
  return access.mustReadState(by, roomId)
}
