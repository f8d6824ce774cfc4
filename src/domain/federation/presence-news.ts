import type { ServerName } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Reader } from '../../store/db/db.ts'
import { getJoinedUsers } from '../../store/rooms/rooms.ts'
import type { Clock } from '../clock.ts'
import { MAX_MEMBERS_SHARING_PRESENCE, MAX_ROOMS_READ_FOR_PRESENCE } from '../limits.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import { type PresenceOf, presenceContent } from '../sync/presence.ts'
import type { UserRooms } from '../sync/user-rooms.ts'

/**
 * Tells the servers with which a user of ours shares a small room how the user is. Of rooms in which nothing has happened for long,
 * so that they are not in memory, a few are looked at: all of them at every coming and going would cost more than it is worth.
 */
export function createPresenceNews(deps: {
  readonly db: Reader
  readonly clock: Clock
  readonly registry: Pick<RoomRegistry, 'peek' | 'getByNid'>
  readonly userRooms: UserRooms
  edu(servers: Iterable<ServerName>, edu: JsonObject): void
}): (userNid: number, presence: PresenceOf) => Promise<void> {
  const { db, clock, registry, userRooms, edu } = deps
  return async (userNid, presence) => {
    const servers = new Set<ServerName>()
    let left = MAX_ROOMS_READ_FOR_PRESENCE
    for (const [roomNid, { membership }] of await userRooms.of(userNid)) {
      if (membership !== 'join') continue
      const known = registry.peek(roomNid)
      const room = known ?? (left-- > 0 ? await registry.getByNid(roomNid) : undefined)
      if (!room?.isShared || room.partialState?.lacksMembers) continue
      if (room.counts.join > MAX_MEMBERS_SHARING_PRESENCE) continue
      for (const server of (await room.servers.of(() => getJoinedUsers(db, roomNid))).keys()) servers.add(server)
    }
    if (servers.size === 0) return
    const content = { user_id: presence.userId, ...presenceContent(presence, clock.now()) }
    edu(servers, { edu_type: 'm.presence', content: { push: [content] } })
  }
}
