import { ProtocolError } from '../../core/errors.ts'
import { type EventId, type RoomId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { JsonObject, ReadJson } from '../../core/json.ts'
import type { Template } from '../rooms/remote/admission.ts'
import { inviteStateEvents } from '../rooms/remote/invite-state.ts'
import type { JoinAnswer } from '../rooms/remote/resident-state.ts'
import { createTakeHandshakeEvent, type HandshakeEventParts } from './handshake-events.ts'
import { createHandshakeRooms, type HandshakeMembership, isNotHere } from './handshake-rooms.ts'

export interface JoinedRoom extends JoinAnswer {
  /** The join as the room has it, with our signature if it needs one. Canonical JSON. */
  readonly event: string
  /** The servers that were in the room before the join. */
  readonly servers: readonly ServerName[]
}

/**
 * Lets users of other servers join, leave and knock through this server (server-server API, "Joining Rooms" and the sections after it).
 */
export interface Handshakes {
  /**
   * A template for the user's event.
   *
   * @param versions room versions that the asking server supports; undefined if that does not matter
   * @throws ProtocolError `M_NOT_FOUND` for rooms that this server is not in, and for those that the asking server may not know of (for a
   *   leave, `M_FORBIDDEN` in both cases); `M_INCOMPATIBLE_ROOM_VERSION`; `M_FORBIDDEN` and others as the room's rules require
   */
  make(asking: ServerName, roomId: RoomId, wanted: WantedMembership): Promise<Template>
  /**
   * Processes a signed event.
   *
   * @param omitsMembers whether the asking server accepts partial state
   * @throws ProtocolError as {@link make}; `M_BAD_JSON` for a body that is no canonical JSON, `M_INVALID_PARAM` for another event than
   *   the template's, `M_FORBIDDEN` for a user of a third server or an invalid signature
   */
  sendJoin(
    asking: ServerName,
    roomId: RoomId,
    eventId: EventId,
    event: ReadJson,
    omitsMembers?: boolean,
  ): Promise<JoinedRoom>
  sendLeave(asking: ServerName, roomId: RoomId, eventId: EventId, event: ReadJson): Promise<void>
  /** Returns the room's stripped state. */
  sendKnock(asking: ServerName, roomId: RoomId, eventId: EventId, event: ReadJson): Promise<JsonObject[]>
}

export interface WantedMembership {
  readonly membership: HandshakeMembership
  readonly userId: UserId
  readonly versions?: readonly string[]
}

/** A room with up to this many members is sent whole: a second request would cost more. */
const MEMBERS_GIVEN_ANYWAY = 20

/** Nobody can leave a room without being in it. An unknown room gets the same answer (seed 3, `make_leave`). */
const notIn = (userId: UserId) => new ProtocolError('M_FORBIDDEN', `${userId} is not in this room.`)

export function createHandshakes(parts: HandshakeEventParts): Handshakes {
  const { resident, access } = parts
  const rooms = createHandshakeRooms(parts)
  const take = createTakeHandshakeEvent(parts, rooms)

  return {
    async make(asking, roomId, { membership, userId, versions }) {
      if (serverOf(userId) !== asking) {
        throw new ProtocolError('M_FORBIDDEN', `${asking} cannot speak for ${userId}.`)
      }
      const proposed = async () => {
        const room = await rooms.roomFor(asking, roomId)
        return { room, template: await rooms.templateFor(room, asking, userId, membership) }
      }
      const { room, template } = await proposed().catch((error: unknown) => {
        throw membership === 'leave' && isNotHere(error) ? notIn(userId) : error
      })
      const { id } = room.version
      if (versions !== undefined && !versions.includes(id)) {
        const extra = { room_version: id }
        const text = `The room has version ${id}, which your server does not name among those it understands.`
        throw new ProtocolError('M_INCOMPATIBLE_ROOM_VERSION', text, { extra })
      }
      return template
    },

    async sendJoin(asking, roomId, eventId, event, omitsMembers) {
      const { room, json } = await take(asking, roomId, eventId, event, 'join')
      const omits = omitsMembers === true && room.counts.join > MEMBERS_GIVEN_ANYWAY
      const answer = await resident.joinAnswer(roomId, eventId, omits)
      if (!answer) throw new ProtocolError('M_FORBIDDEN', 'The room does not accept this event.')
      const servers = [...(await access.serversOf(room))]
      const before = servers.filter(([server, users]) => server !== asking || users.size > 1)
      return { ...answer, event: json, servers: before.map(([server]) => server) }
    },

    async sendLeave(asking, roomId, eventId, event) {
      await take(asking, roomId, eventId, event, 'leave')
    },

    async sendKnock(asking, roomId, eventId, event) {
      const { room } = await take(asking, roomId, eventId, event, 'knock')
      return inviteStateEvents(room, undefined)
    },
  }
}
