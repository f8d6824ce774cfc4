import { diffState, EMPTY_STATE, forEachState, type StateMap } from '../../core/state/trie.ts'
import type { Reader } from '../../store/db.ts'
import { getTimelineBackwards, roomPositionAt } from '../../store/events.ts'
import { loadState } from '../../store/state.ts'
import type { EventCache } from '../rooms/event-cache.ts'
import type { Room } from '../rooms/room.ts'
import type { RoomEvent } from '../rooms/room-event.ts'
import { type EventPosition, isNewer } from './token.ts'

/** What a room's state was, at points that clients ask about. */
export interface RoomStates {
  /** The state before an event of the room. */
  before(room: Room, event: RoomEvent): Promise<StateMap>
  /** The state that a reader at a stream position knew; empty when the room had no events by then. */
  at(room: Room, position: EventPosition): Promise<StateMap>
}

export function createRoomStates({ db, events }: { db: Reader; events: EventCache }): RoomStates {
  async function stateAfterChange(room: Room, chain: number, seq: number): Promise<StateMap> {
    return room.recentState(chain, seq) ?? (await loadState(db, room.nid, { chain, seq }))
  }

  async function lastSeen(room: Room, position: EventPosition): Promise<RoomEvent | undefined> {
    if (!isNewer(room.committed.nid, position)) return room.timeline.at(-1) ?? eventAt(room, room.committed.pos)
    const recent = room.timeline.findLast((event) => !isNewer(event.nid, position))
    if (recent) return recent
    const pos = await roomPositionAt(db, room.nid, position)
    return pos === 0 ? undefined : eventAt(room, pos)
  }

  async function eventAt(room: Room, pos: number): Promise<RoomEvent | undefined> {
    const [row] = await getTimelineBackwards(db, room.nid, pos - 1, pos, 1)
    return row && events.adopt(row)
  }

  return {
    before: (room, event) => stateAfterChange(room, event.stateChain, event.stateSeq),
    async at(room, position) {
      const event = await lastSeen(room, position)
      if (!event) return EMPTY_STATE
      return stateAfterChange(room, event.stateChain, event.stateSeq + (event.isState ? 1 : 0))
    },
  }
}

/** The numbers of all state events, or of those that are not in `known`. */
export function stateNids(state: StateMap, known?: StateMap): number[] {
  const nids: number[] = []
  if (known) diffState(known, state, (_key, _before, after) => after !== 0 && nids.push(after))
  else forEachState(state, (_key, nid) => nids.push(nid))
  return nids
}
