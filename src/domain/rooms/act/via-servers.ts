import { type RoomId, type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import { compareIntegers } from '../../../core/large-integers.ts'
import type { Database } from '../../../store/db/db.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { RemoteMembers } from '../remote/remote-members.ts'
import { makerOf } from '../remote/resident-servers.ts'
import { serversToTell } from '../room/destinations.ts'
import { powerLevelsOf } from '../room/power.ts'
import type { RoomRegistry } from '../room/registry.ts'

/** The servers through which a user of ours may enter a room. */
export interface ViaServers {
  /**
   * Where to enter a room that none of our users is in. Undefined when this server can write to the room itself.
   *
   * @param via the servers that the user named
   */
  into(by: Requester, roomId: RoomId, via: readonly ServerName[]): Promise<readonly ServerName[] | undefined>
  /** The other servers in a room, those of members with the most power first: one of these can authorise a join. */
  inRoom(roomId: RoomId): Promise<readonly ServerName[]>
}

export interface ViaServerParts {
  readonly db: Database
  readonly registry: RoomRegistry
  readonly serverName: ServerName
  readonly remoteMembers: RemoteMembers
}

export function createViaServers({ db, registry, serverName, remoteMembers }: ViaServerParts): ViaServers {
  return {
    async into(by, roomId, via) {
      const room = await registry.get(roomId)
      if (room && room.committed.extremities.length > 0) {
        if (room.localMembers.size > 0 || !room.isShared) return undefined
      }
      const known = room ? await serversToTell(db, room) : undefined
      const pending = await remoteMembers.pendingOf(by.userNid, roomId)
      const inviter = pending ? [serverOf(pending.event.sender)] : []
      const servers = [...new Set([...inviter, ...via, ...makerOf(roomId), ...(known?.keys() ?? [])])].filter(
        (server) => server !== serverName,
      )
      // Undefined also if nobody else knows the room, because there is no server to ask.
      return servers.length === 0 ? undefined : servers
    },

    async inRoom(roomId) {
      const room = await registry.get(roomId)
      if (!room) return []
      const joined = await serversToTell(db, room)
      const levels = await powerLevelsOf(room)
      const mighty = [...room.keys.ofType('m.room.member')]
        .map(([userId]) => ({ server: serverOf(userId as UserId), level: levels.levelOf(userId) }))
        .filter(({ server, level }) => joined.has(server) && level >= levels.invite)
        .sort((one, other) => compareIntegers(other.level, one.level))
      const servers = new Set([...mighty.map(({ server }) => server), ...joined.keys()])
      return [...servers].filter((server) => server !== serverName)
    },
  }
}
