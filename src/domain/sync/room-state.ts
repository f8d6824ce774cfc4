import { EMPTY_STATE, type StateMap } from '../../core/state/trie.ts'
import type { Reader } from '../../store/db/db.ts'
import { getTimelineBackwards, roomPositionAt } from '../../store/events/events.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import { stateAt } from '../rooms/room/past-state.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { type EventPosition, isNewer } from './token.ts'

/** What a room's state was, at points that clients ask about. */
export interface RoomStates {
  /** The state that an event of the room was sent in. */
  before(room: Room, event: RoomEvent): Promise<StateMap>
  /** The state that a reader at a stream position knew; empty when the room had no events by then. */
  at(room: Room, position: EventPosition): Promise<StateMap>
}

export function createRoomStates({ db, events }: { db: Reader; events: EventCache }): RoomStates {
  async function lastSeen(room: Room, position: EventPosition): Promise<RoomEvent | undefined> {
    const isUpToDate = !isNewer(room.committed.nid, position)
    const recent = isUpToDate
      ? room.timeline.at(-1)
      : room.timeline.findLast((one) => !isNewer(one.streamPos, position))
    if (recent) return (await room.eventsAt([recent]))[0]
    if (isUpToDate) return eventAt(room, room.committed.pos)
    const pos = await roomPositionAt(db, room.nid, position)
    return pos === 0 ? undefined : eventAt(room, pos)
  }

  async function eventAt(room: Room, pos: number): Promise<RoomEvent | undefined> {
    const [row] = await getTimelineBackwards(db, room.nid, pos - 1, pos, 1)
    return row && events.adopt(row)
  }

  return {
    before: (room, event) => stateAt(db, room, event.pointBefore),
    async at(room, position) {
      const event = await lastSeen(room, position)
      return event ? stateAt(db, room, event.currentPoint) : EMPTY_STATE
    },
  }
}
