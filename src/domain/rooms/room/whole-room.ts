import { MAX_MEMBERS_WAIT_MS } from '../../limits.ts'
import { membersAreMissing } from './partial-state.ts'
import type { RoomRegistry } from './registry.ts'
import type { Room } from './room.ts'

/**
 * Waits until all members of a room are known.
 *
 * @throws ProtocolError 503 `M_UNKNOWN` when that takes too long
 */
export async function wholeRoom(registry: Pick<RoomRegistry, 'getByNid'>, room: Room): Promise<Room> {
  const { partialState } = room
  if (!partialState?.lacksMembers) return room
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, MAX_MEMBERS_WAIT_MS)
  })
  await Promise.race([partialState.whole, late])
  clearTimeout(timer)
  if (partialState.lacksMembers) throw membersAreMissing()
  return registry.getByNid(room.nid)
}
