import type { ServerName } from '../../../core/ids.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getJoinedUsers } from '../../../store/rooms/rooms.ts'
import type { Room } from './room.ts'

/**
 * The servers that get a room's events: those with users in it and, during a resync, those that the resident server says have users in it.
 */
export async function serversToTell(db: Reader, room: Room): Promise<Set<ServerName>> {
  const joined = await room.servers.of(() => getJoinedUsers(db, room.nid))
  return new Set([...joined.keys(), ...(room.partialState?.serversMeanwhile ?? [])])
}
