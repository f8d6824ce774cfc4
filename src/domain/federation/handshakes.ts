import { ProtocolError } from '../../core/errors.ts'
import { type EventId, type RoomId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import type { JsonObject, ReadJson } from '../../core/json.ts'
import type { Template } from '../rooms/remote/admission.ts'
import { inviteStateEvents } from '../rooms/remote/invite-state.ts'
import type { JoinAnswer } from '../rooms/remote/resident-state.ts'
import { createTakeHandshakeEvent, type HandshakeEventParts } from './handshake-events.ts'
import { createHandshakeRooms, type HandshakeMembership, isNotHere } from './handshake-rooms.ts'

export interface JoinedRoom extends JoinAnswer {
  /** The join as the room has it, with our signature where it needs one. Canonical JSON. */
  readonly event: string
  /** Those that were in the room before it. */
  readonly servers: readonly ServerName[]
}

/** How users of other servers join, leave and knock through this one (server-server API, "Joining Rooms" and what follows). */
export interface Handshakes {
  /**
   * A template for the user's event.
   *
   * @param versions that the asking server understands; undefined where that does not matter
   * @throws ProtocolError `M_NOT_FOUND` for rooms that this server is not in, and for those that are none of the asking server's
   * business (who leaves is told `M_FORBIDDEN` of both); `M_INCOMPATIBLE_ROOM_VERSION`; `M_FORBIDDEN` and others as the rules of the
   * room have it
   */
  make(asking: ServerName, roomId: RoomId, wanted: WantedMembership): Promise<Template>
  /**
   * Takes a signed event in.
   *
   * @param omitsMembers the asking server does without most of the members for now
   * @throws ProtocolError as {@link make}; `M_BAD_JSON` for what is no canonical JSON, `M_INVALID_PARAM` for another event than was to be
   * sent, `M_FORBIDDEN` for one of another server's user or without a good signature
   */
  sendJoin(
    asking: ServerName,
    roomId: RoomId,
    eventId: EventId,
    event: ReadJson,
    omitsMembers?: boolean,
  ): Promise<JoinedRoom>
  sendLeave(asking: ServerName, roomId: RoomId, eventId: EventId, event: ReadJson): Promise<void>
  /** Gives what the room shows to those who are not in it. */
  sendKnock(asking: ServerName, roomId: RoomId, eventId: EventId, event: ReadJson): Promise<JsonObject[]>
}

export interface WantedMembership {
  readonly membership: HandshakeMembership
  readonly userId: UserId
  readonly versions?: readonly string[]
}

/** Rooms of so many members are given whole: to ask a second time would cost more. */
const MEMBERS_GIVEN_ANYWAY = 20

/** To leave one has to be in a room: of one that there is not this is said too (seed 3, `make_leave`). */
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
