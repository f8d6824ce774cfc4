import { getRoomsChangedSince } from '../../store/rooms/rooms.ts'
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
