import type { RoomId } from '../../../core/ids.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getNewestEvents, getNewestEventsOfUser } from '../../../store/rooms/rooms.ts'
import type { RecentChanges } from '../recent-changes.ts'

/** When something last happened in rooms, as positions of the event stream: the order of sliding sync's lists. */
export interface Recency {
  /** Has those of a user's rooms read that are not known yet. */
  know(userNid: number, roomNids: Iterable<number>): undefined | Promise<void>
  /** Has all rooms of a user read, also before it is known which they are. */
  knowAll(userNid: number): Promise<void>
  /** Differs after what was known was forgotten. */
  readonly generation: number
  /** 0 for a room that is not known. */
  of(roomNid: number): number
  idOf(roomNid: number): RoomId | undefined
}

const MAX_ROOMS = 200_000
/** So many rooms are found sooner by their user than by their numbers. */
export const MANY = 500

/** Reads each room once. From then on, news of commits says what is newer. */
export function createRecency({
  db,
  roomEvents,
}: {
  readonly db: Reader
  readonly roomEvents: RecentChanges
}): Recency {
  let rooms = new Map<number, { readonly id: RoomId; readonly newest: number }>()
  let generation = 0
  /** If commits were missed, what was read before says nothing. */
  let floor = roomEvents.floor

  async function take(reading: ReturnType<typeof getNewestEvents>): Promise<void> {
    const into = rooms
    for (const { room_nid, room_id, last_nid } of await reading) {
      into.set(room_nid, { id: room_id, newest: last_nid })
    }
  }

  function forgetIfOld(): void {
    if (floor === roomEvents.floor && rooms.size <= MAX_ROOMS) return
    floor = roomEvents.floor
    generation += 1
    rooms = new Map()
  }

  return {
    get generation() {
      forgetIfOld()
      return generation
    },
    know(userNid, roomNids) {
      forgetIfOld()
      const unknown: number[] = []
      for (const nid of roomNids) if (!rooms.has(nid)) unknown.push(nid)
      if (unknown.length === 0) return undefined
      return take(unknown.length < MANY ? getNewestEvents(db, unknown) : getNewestEventsOfUser(db, userNid))
    },
    knowAll(userNid) {
      forgetIfOld()
      return take(getNewestEventsOfUser(db, userNid))
    },
    of: (roomNid) => Math.max(rooms.get(roomNid)?.newest ?? 0, roomEvents.newest(roomNid) ?? 0),
    idOf: (roomNid) => rooms.get(roomNid)?.id,
  }
}
