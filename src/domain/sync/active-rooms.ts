import { findRoomNids, getRoomsChangedSince } from '../../store/rooms/rooms.ts'
import type { Look } from './look.ts'
import type { SyncSources } from './sources.ts'
import type { EventPosition } from './token.ts'

/** The rooms that have events after a position. Queries the database only about changes that this process has not seen. */
export async function roomsWithEvents(
  { db, roomEvents }: Pick<SyncSources, 'db' | 'roomEvents'>,
  since: EventPosition,
  roomNids: readonly number[],
): Promise<Set<number>> {
  const found = new Set<number>()
  const unknown: number[] = []
  for (const nid of roomNids) {
    const changed = roomEvents.since(nid, since[0] ?? 0)
    if (changed === true) found.add(nid)
    else if (changed === undefined) unknown.push(nid)
  }
  if (unknown.length > 0) {
    for (const nid of await getRoomsChangedSince(db, unknown, since)) found.add(nid)
  }
  return found
}

/** Those of the rooms that the filter names, if it names any: others need not be read to find out that it leaves them out. */
export async function namedRooms({ sources, request }: Look, roomNids: readonly number[]): Promise<readonly number[]> {
  const { rooms } = request.filter.room
  if (rooms === undefined) return roomNids
  const named = new Set((await findRoomNids(sources.db, rooms)).map(({ room_nid }) => room_nid))
  return roomNids.filter((nid) => named.has(nid))
}
