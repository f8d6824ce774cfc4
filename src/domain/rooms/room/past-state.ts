import { forEachState, type StateMap } from '../../../core/state/trie.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getKeysAt, loadState, type StatePoint } from '../../../store/events/state.ts'
import type { Room } from './room.ts'

/** The whole state of a room at a point: from memory if the point is recent, otherwise from the log. */
export function stateAt(db: Reader, room: Room, point: StatePoint): StateMap | Promise<StateMap> {
  return room.recentState(point.chain, point.seq) ?? loadState(db, room.nid, point)
}

/** The numbers of some state events at a point, in no order; keys without an event are left out. */
export async function keysAt(db: Reader, room: Room, point: StatePoint, keyIds: readonly number[]): Promise<number[]> {
  if (keyIds.length === 0) return []
  return [...(await getKeysAt(db, room.nid, point, keyIds)).values()]
}

/** The numbers of all events in a state. */
export function stateNids(state: StateMap): number[] {
  const nids: number[] = []
  forEachState(state, (_key, nid) => nids.push(nid))
  return nids
}
