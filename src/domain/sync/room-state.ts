import { EMPTY_STATE, type StateMap } from '../../core/state/trie.ts'
import type { Reader } from '../../store/db/db.ts'
import { getTimelineBackwards, roomPositionAt } from '../../store/events/events.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import { stateAt } from '../rooms/room/past-state.ts'
import type { Place } from '../rooms/room/recent/places.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { type EventPosition, isNewer } from './token.ts'

/** A room's state at the points that clients ask about. */
export interface RoomStates {
  /** The state right before an event of the room. Synchronous where it is in memory. */
  before(room: Room, event: RoomEvent): StateMap | Promise<StateMap>
  /** The state that a reader at a stream position knew; empty when the room had no events by then. Synchronous where it is in memory. */
  at(room: Room, position: EventPosition): StateMap | Promise<StateMap>
}

export function createRoomStates({ db, events }: { db: Reader; events: EventCache }): RoomStates {
  function lastSeenPlace({ timeline, committed }: Room, position: EventPosition): Place | undefined {
    if (!isNewer(committed.nid, position)) return timeline.newest
    return timeline.findLast((one) => !isNewer(one.streamPos, position))
  }

  async function lastSeen(room: Room, position: EventPosition): Promise<RoomEvent | undefined> {
    const recent = lastSeenPlace(room, position)
    if (recent) return (await room.eventsAt([recent]))[0]
    if (!isNewer(room.committed.nid, position)) return eventAt(room, room.committed.pos)
    const pos = await roomPositionAt(db, room.nid, position)
    return pos === 0 ? undefined : eventAt(room, pos)
  }

  function recentState(room: Room, position: EventPosition): StateMap | undefined {
    const recent = lastSeenPlace(room, position)
    const event = recent && room.fact(recent.nid)
    return event && room.recentState(event.currentPoint.chain, event.currentPoint.seq)
  }

  async function readState(room: Room, position: EventPosition): Promise<StateMap> {
    const event = await lastSeen(room, position)
    return event ? stateAt(db, room, event.currentPoint) : EMPTY_STATE
  }

  async function eventAt(room: Room, pos: number): Promise<RoomEvent | undefined> {
    const [row] = await getTimelineBackwards(db, room.nid, pos - 1, pos, 1)
    return row && events.adopt(row)
  }

  return {
    before: (room, event) => stateAt(db, room, event.pointBefore),
    at: (room, position) => recentState(room, position) ?? readState(room, position),
  }
}
