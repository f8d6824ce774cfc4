import type { Logger } from 'pino'
import type { AppserviceNews } from '../appservices/news.ts'
import { MAX_MEMBERS_SHARING_PRESENCE } from '../limits.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Notifier } from './notifier.ts'
import type { PresenceOf, PresenceParts } from './presence.ts'
import type { UserRooms } from './user-rooms.ts'

/** Passes presence on to syncs, services and servers. All are hints: if the database is away, they see it the next time they look. */
export function presenceListeners(deps: {
  readonly registry: Pick<RoomRegistry, 'peek'>
  readonly userRooms: UserRooms
  readonly notifier: Pick<Notifier, 'wakeRoom'>
  readonly services: Pick<AppserviceNews, 'presenceChanged'>
  readonly log: Logger
  tellServers(userNid: number, presence: PresenceOf): Promise<void>
}): Pick<PresenceParts, 'changed' | 'toServers'> {
  const { registry, userRooms, notifier, services, log, tellServers } = deps
  const failed = (err: unknown) => log.debug({ err }, 'a presence was not sent')

  /** Wakes the users who see a user's presence. */
  async function wakeNeighbours(userNid: number, residentServers: ReadonlySet<number> | undefined): Promise<void> {
    for (const roomNid of residentServers ?? (await userRooms.of(userNid)).joined.keys()) {
      const room = registry.peek(roomNid)
      if (room && room.localMembers.size <= MAX_MEMBERS_SHARING_PRESENCE) notifier.wakeRoom(roomNid)
    }
  }

  return {
    changed(userNid, { userId, roomNids }) {
      wakeNeighbours(userNid, roomNids).catch(failed)
      services.presenceChanged(userNid, userId).catch(failed)
    },
    toServers: (userNid, presence) => void tellServers(userNid, presence).catch(failed),
  }
}
