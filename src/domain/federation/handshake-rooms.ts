import { ProtocolError } from '../../core/errors.ts'
import type { RoomId, ServerName, UserId } from '../../core/ids.ts'
import type { Template } from '../rooms/remote/admission.ts'
import type { Resident } from '../rooms/remote/resident.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import { wholeRoom } from '../rooms/room/whole-room.ts'
import { type ServerAccess, shutOut } from './server-access.ts'

/** What a user of another server may want to become in a room through this one. */
export type HandshakeMembership = 'join' | 'leave' | 'knock'

/** Rooms as they are shown to servers that want a user of theirs in or out: who is a stranger hears the same as of no room. */
export interface HandshakeRooms {
  /** A room with all its members. @throws ProtocolError `M_NOT_FOUND`; `M_FORBIDDEN` where the room's access list shuts the server out */
  roomFor(asking: ServerName, roomId: RoomId): Promise<Room>
  /** Gives an answer about a user, or `M_NOT_FOUND` in place of a refusal that says that there is such a room. */
  hideFromStrangers<T>(asking: ServerName, room: Room, userId: UserId, answer: Promise<T>): Promise<T>
  /** A template for a user's event. @throws ProtocolError as the rules of the room have it, hidden from strangers */
  templateFor(room: Room, asking: ServerName, userId: UserId, membership: HandshakeMembership): Promise<Template>
}

export interface HandshakeRoomParts {
  readonly registry: RoomRegistry
  readonly resident: Resident
  readonly access: ServerAccess
}

const notHere = () => new ProtocolError('M_NOT_FOUND', 'This server is not in the room.')
export const isNotHere = (error: unknown) => error instanceof ProtocolError && error.errcode === 'M_NOT_FOUND'

export function createHandshakeRooms({ registry, resident, access }: HandshakeRoomParts): HandshakeRooms {
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
      const room = await registry.get(roomId)
      const standing = await access.standing(asking, room)
      if (standing === 'refused') throw shutOut(asking)
      if (!room || standing === 'not-here') throw notHere()
      // To wait is to say that there is such a room.
      if (room.partialState?.lacksMembers && !(await access.mayKnowOf(asking, room))) throw notHere()
      return wholeRoom(registry, room)
    },
    templateFor(room, asking, userId, membership) {
      const wanted = { type: 'm.room.member', sender: userId, stateKey: userId, content: { membership } } as const
      return hideFromStrangers(asking, room, userId, resident.template(room.id, wanted))
    },
  }
}
