import type { RoomId } from '../../../core/ids.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getNewestEvents } from '../../../store/rooms/rooms.ts'
import type { RecentChanges } from '../recent-changes.ts'

/** When something last happened in rooms, as positions of the event stream: the order of sliding sync's lists. */
export interface Recency {
  /** Has the rooms read that are not known yet. */
  know(roomNids: readonly number[]): undefined | Promise<void>
  /** 0 for a room that is not known. */
  of(roomNid: number): number
  idOf(roomNid: number): RoomId | undefined
}

const MAX_ROOMS = 200_000

/** Reads each room once. From then on, news of commits says what is newer. */
export function createRecency({
  db,
  roomEvents,
}: {
  readonly db: Reader
  readonly roomEvents: RecentChanges
}): Recency {
  let rooms = new Map<number, { readonly id: RoomId; readonly newest: number }>()
  /** If commits were missed, what was read before says nothing. */
  let floor = roomEvents.floor

  async function read(roomNids: readonly number[]): Promise<void> {
    const into = rooms
    for (const { room_nid, room_id, last_nid } of await getNewestEvents(db, roomNids)) {
      into.set(room_nid, { id: room_id, newest: last_nid })
    }
  }

  return {
    know(roomNids) {
      if (floor !== roomEvents.floor || rooms.size > MAX_ROOMS) {
        floor = roomEvents.floor
        rooms = new Map()
      }
      const unknown = roomNids.filter((nid) => !rooms.has(nid))
      return unknown.length === 0 ? undefined : read(unknown)
    },
    of: (roomNid) => Math.max(rooms.get(roomNid)?.newest ?? 0, roomEvents.newest(roomNid) ?? 0),
    idOf: (roomNid) => rooms.get(roomNid)?.id,
  }
}
