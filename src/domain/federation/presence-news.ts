import { type ServerName, serverOf } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Reader } from '../../store/db/db.ts'
import { getJoinedOfSmallRooms, getJoinedUsers } from '../../store/rooms/rooms.ts'
import type { Clock } from '../clock.ts'
import { MAX_MEMBERS_SHARING_PRESENCE, MAX_ROOMS_READ_FOR_PRESENCE } from '../limits.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import { type PresenceOf, presenceContent } from '../sync/presence.ts'
import type { UserRooms } from '../sync/user-rooms.ts'

/**
 * Sends a local user's presence to the servers with which the user shares a small room. Rooms that were quiet for long are not in memory, and
 * the members of only some of them are read: reading all of them at every change would cost too much.
 */
export function createPresenceNews(deps: {
  readonly db: Reader
  readonly clock: Clock
  readonly registry: Pick<RoomRegistry, 'peek'>
  readonly userRooms: UserRooms
  edu(servers: Iterable<ServerName>, edu: JsonObject): void
}): (userNid: number, presence: PresenceOf) => Promise<void> {
  const { db, clock, registry, userRooms, edu } = deps
  return async (userNid, presence) => {
    const servers = new Set<ServerName>()
    const unread: number[] = []
    for (const roomNid of (await userRooms.of(userNid)).joined.keys()) {
      const room = registry.peek(roomNid)
      if (room === undefined) {
        if (unread.length < MAX_ROOMS_READ_FOR_PRESENCE) unread.push(roomNid)
      } else if (room.isShared && !room.partialState?.lacksMembers && room.counts.join <= MAX_MEMBERS_SHARING_PRESENCE)
        for (const server of (await room.servers.of(() => getJoinedUsers(db, roomNid))).keys()) servers.add(server)
    }
    const found = unread.length > 0 ? await getJoinedOfSmallRooms(db, unread, MAX_MEMBERS_SHARING_PRESENCE) : []
    for (const userId of found) servers.add(serverOf(userId))
    if (servers.size === 0) return
    const content = { user_id: presence.userId, ...presenceContent(presence, clock.now()) }
    edu(servers, { edu_type: 'm.presence', content: { push: [content] } })
  }
}
