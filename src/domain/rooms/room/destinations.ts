import type { ServerName } from '../../../core/ids.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getJoinedUsers } from '../../../store/rooms/rooms.ts'
import type { Room } from './room.ts'

/** The servers that are told what passes in a room: those with users in it, and while its members are fetched those that are said to have. */
export async function serversToTell(db: Reader, room: Room): Promise<Set<ServerName>> {
  const joined = await room.servers.of(() => getJoinedUsers(db, room.nid))
  return new Set([...joined.keys(), ...(room.partialState?.serversMeanwhile ?? [])])
}
