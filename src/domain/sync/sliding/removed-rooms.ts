import { JsonBytes } from '../../../core/json-bytes.ts'
import { idsOfRemovedRooms } from '../../../store/rooms/room-deletions.ts'
import { MAX_SLIDING_ROOMS } from '../../limits/sliding-sync.ts'
import type { ScopedRoom } from './extensions/extension.ts'
import type { SlidingLook } from './look.ts'
import { endWithLeave } from './own-leave.ts'
import type { RoomOrder } from './room-order.ts'

/** A room as the answer shows it. */
export interface ShownRoom {
  readonly roomId: string
  readonly json: JsonBytes
}

const NO_NIDS: readonly number[] = []

/** The rooms that the client was sent, and that are on this server no more. */
export function removedRooms({ record }: SlidingLook, { isUnknown }: RoomOrder): readonly number[] {
  let removed: number[] | undefined
  for (const nid of record.rooms.keys()) {
    if (!isUnknown(nid)) continue
    removed ??= []
    if (removed.push(nid) > MAX_SLIDING_ROOMS) break
  }
  return removed ?? NO_NIDS
}

/**
 * Says of removed rooms that the user is out of them: the client may have been away while they were removed. If the user is in a room again,
 * by another number, the answer shows that.
 */
export async function farewells(
  look: SlidingLook,
  removed: readonly number[],
  answered: readonly ScopedRoom[],
): Promise<ShownRoom[]> {
  const isShown = new Set<string>(answered.map(({ answer }) => answer.roomId))
  const ids = await idsOfRemovedRooms(look.sources.db, removed)
  const gone = [...new Set(ids.values())].filter((roomId) => !isShown.has(roomId))
  return gone.map((roomId) => {
    const out = new JsonBytes().text('{"bump_stamp":0')
    if (look.sliding.shape.hasMembership) out.text(',"membership":"leave"')
    return { roomId, json: endWithLeave(out, look, roomId) }
  })
}
