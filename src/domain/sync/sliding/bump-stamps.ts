import { createBoundedMap } from '../../../core/cache.ts'
import type { Reader } from '../../../store/db/db.ts'
import { perTick } from '../../../store/db/per-tick.ts'
import { getNewestOfTypes } from '../../../store/events/events.ts'
import { MAX_EVENTS_TO_BUMP } from '../../limits/sliding-sync.ts'
import type { Room } from '../../rooms/room/room.ts'

/** The position of the newest event of a room that moves it up in the lists of clients. Synchronous where the room was looked at before. */
export type BumpStamps = (room: Room) => number | Promise<number>

/** What counts as activity (MSC4186, "bump_stamp"). */
const TYPES: readonly string[] = [
  'm.room.create',
  'm.room.message',
  'm.room.encrypted',
  'm.sticker',
  'm.call.invite',
  'm.poll.start',
  'm.beacon_info',
]

const MAX_ROOMS = 100_000

export function createBumpStamps(db: Reader): BumpStamps {
  const known = createBoundedMap<number, { readonly pos: number; readonly stamp: number }>(MAX_ROOMS)
  const read = perTick(async (roomNids: readonly number[]) => {
    const rows = await getNewestOfTypes(db, roomNids, TYPES, MAX_EVENTS_TO_BUMP)
    return new Map(rows.map(({ room_nid, stamp }) => [room_nid, stamp ?? 0]))
  })

  /** Undefined if memory does not reach back far enough. */
  function fromMemory(room: Room, after: number, before: number | undefined): number | undefined {
    const { timeline, timelineFrom } = room
    for (let index = timeline.length - 1; index >= 0; index--) {
      const place = timeline.at(index)
      if (place.pos <= after) break
      const event = room.fact(place.nid)
      if (event === undefined) return undefined
      if (TYPES.includes(event.type)) return place.streamPos
    }
    return before !== undefined && timelineFrom <= after + 1 ? before : undefined
  }

  return (room) => {
    const { pos } = room.committed
    const had = known.get(room.nid)
    if (had?.pos === pos) return had.stamp
    const stamp = fromMemory(room, had?.pos ?? 0, had?.stamp)
    const keep = (newest: number): number => {
      known.set(room.nid, { pos, stamp: newest })
      return newest
    }
    return stamp === undefined ? read([room.nid]).then((found) => keep(found.get(room.nid) ?? 0)) : keep(stamp)
  }
}
