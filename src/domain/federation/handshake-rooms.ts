import { ProtocolError } from '../../core/errors.ts'
import type { RoomId, ServerName, UserId } from '../../core/ids.ts'
import type { Upgrades } from '../rooms/act/upgrade/upgrades.ts'
import type { Template } from '../rooms/remote/admission.ts'
import type { Resident } from '../rooms/remote/resident.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import { wholeRoom } from '../rooms/room/whole-room.ts'
import { type ServerAccess, shutOut } from './server-access.ts'

/** The membership that a remote user wants in a room through this server. */
export type HandshakeMembership = 'join' | 'leave' | 'knock'

/**
 * Rooms, for servers that want one of their users to join, leave or knock. A server that may not know of a room gets the same answer as
 * for an unknown room.
 */
export interface HandshakeRooms {
  /** A room with all its members. @throws ProtocolError `M_NOT_FOUND`; `M_FORBIDDEN` if the room's server ACL denies the server */
  roomFor(asking: ServerName, roomId: RoomId): Promise<Room>
  /** Returns the answer about a user. If it is a refusal that would reveal the room, it throws `M_NOT_FOUND` instead. */
  hideFromStrangers<T>(asking: ServerName, room: Room, userId: UserId, answer: Promise<T>): Promise<T>
  /**
   * A template for a user's event. @throws ProtocolError as the room's rules require, or `M_NOT_FOUND` for servers that may not know of
   * the room
   */
  templateFor(room: Room, asking: ServerName, userId: UserId, membership: HandshakeMembership): Promise<Template>
}

export interface HandshakeRoomParts {
  readonly registry: RoomRegistry
  readonly resident: Resident
  readonly access: ServerAccess
  readonly upgrades: Pick<Upgrades, 'untilOpen'>
}

const notHere = () => new ProtocolError('M_NOT_FOUND', 'This server is not in the room.')
export const isNotHere = (error: unknown) => error instanceof ProtocolError && error.errcode === 'M_NOT_FOUND'

export function createHandshakeRooms({ registry, resident, access, upgrades }: HandshakeRoomParts): HandshakeRooms {
  async function hideFromStrangers<T>(asking: ServerName, room: Room, userId: UserId, answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      const isRefused = error instanceof ProtocolError && error.errcode === 'M_FORBIDDEN'
      const isSecret = async () =>
        !(await access.mayKnowOf(asking, room)) && !(await room.stateEvent('m.room.member', userId))
      if (isRefused && (await isSecret())) throw notHere()
      throw error
    }
  }

  return {
    hideFromStrangers,
    async roomFor(asking, roomId) {
      // Whoever follows a tombstone may be faster than the room it names is made.
      await upgrades.untilOpen(roomId)
      const room = await registry.get(roomId)
      const standing = await access.standing(asking, room)
      if (standing === 'refused') throw shutOut(asking)
      if (!room || standing === 'not-here') throw notHere()
      // Waiting would reveal that the room exists.
      if (room.partialState?.lacksMembers && !(await access.mayKnowOf(asking, room))) throw notHere()
      return wholeRoom(registry, room)
    },
    templateFor(room, asking, userId, membership) {
      const wanted = { type: 'm.room.member', sender: userId, stateKey: userId, content: { membership } } as const
      return hideFromStrangers(asking, room, userId, resident.template(room.id, wanted))
    },
  }
}
