import { ProtocolError } from '../../core/errors.ts'
import { joinAuthoriserOf } from '../../core/event/content.ts'
import type { Pdu } from '../../core/event/format.ts'
import { readPdu } from '../../core/event/read.ts'
import { type EventId, isUserId, type RoomId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { isObject, type JsonObject, type ReadJson } from '../../core/json.ts'
import type { Template } from '../rooms/admission.ts'
import { wholeRoom } from '../rooms/filling.ts'
import { inviteStateEvents } from '../rooms/invite-state.ts'
import type { Receiver } from '../rooms/receive.ts'
import type { RoomRegistry } from '../rooms/registry.ts'
import type { JoinAnswer, Resident } from '../rooms/resident.ts'
import type { Room } from '../rooms/room.ts'
import type { RoomEvent } from '../rooms/room-event.ts'
import { isRefusal } from '../rooms/vet.ts'
import { type ServerAccess, shutOut } from './server-access.ts'

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
   * @throws ProtocolError as {@link make}, `M_INVALID_PARAM` for another event than was to be sent
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
  readonly membership: 'join' | 'leave' | 'knock'
  readonly userId: UserId
  readonly versions?: readonly string[]
}

export interface HandshakeParts {
  readonly serverName: ServerName
  readonly registry: RoomRegistry
  readonly resident: Resident
  readonly receiver: Receiver
  readonly access: ServerAccess
  /** An event that came by a handshake, and that nobody but us will tell the other servers of. Resolves when that is sure to happen. */
  accepted(room: Room, event: RoomEvent, from: ServerName): Promise<void>
}

/** Rooms of so many members are told whole: to ask a second time would cost more. */
const MEMBERS_TOLD_ANYWAY = 20

const notHere = () => new ProtocolError('M_NOT_FOUND', 'This server is not in the room.')
const isNotHere = (error: unknown) => error instanceof ProtocolError && error.errcode === 'M_NOT_FOUND'
/** To leave one has to be in a room: of one that there is not this is said too (seed 3, `make_leave`). */
const notIn = (userId: UserId) => new ProtocolError('M_FORBIDDEN', `${userId} is not in this room.`)

export function createHandshakes(parts: HandshakeParts): Handshakes {
  const { registry, resident, receiver, access } = parts

  async function roomFor(asking: ServerName, roomId: RoomId): Promise<Room> {
    const room = await registry.get(roomId)
    const standing = await access.standing(asking, room)
    if (standing === 'refused') throw shutOut(asking)
    if (!room || standing === 'not-here') throw notHere()
    // To wait is to say that there is such a room.
    if (room.filling?.lacksMembers && !(await access.mayKnowOf(asking, room))) throw notHere()
    return wholeRoom(registry, room)
  }

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

  const templateFor = (room: Room, asking: ServerName, userId: UserId, membership: WantedMembership['membership']) => {
    const wanted = { type: 'm.room.member', sender: userId, stateKey: userId, content: { membership } } as const
    return hideFromStrangers(asking, room, userId, resident.template(room.id, wanted))
  }

  /** What is wrong with an event is told to those who could have found the room by asking for a template. */
  async function membershipOf(
    ...[room, asking, eventId, event, membership]: Parameters<typeof requireMembership>
  ): Promise<Pdu> {
    try {
      return requireMembership(room, asking, eventId, event, membership)
    } catch (error) {
      const { sender } = isObject(event.value) ? event.value : {}
      const userId = isUserId(sender) ? sender : (`@:${asking}` as UserId)
      await templateFor(room, asking, userId, membership)
      throw error
    }
  }

  /**
   * Before anything is fetched or kept for the sake of an event: that the room would take it as it stands. Not what was taken
   * already and comes again, nor a join that a member on another server lets in, of which we know less than that server.
   */
  async function mustBeWelcome(room: Room, asking: ServerName, eventId: EventId, pdu: Pdu): Promise<void> {
    const authoriser = room.version.restrictedJoins ? joinAuthoriserOf(pdu.content) : undefined
    if (isUserId(authoriser) && serverOf(authoriser) !== parts.serverName) return
    if ((await resident.events(room.id, [eventId])).length > 0) return
    await templateFor(room, asking, pdu.sender, pdu.content.membership as WantedMembership['membership'])
  }

  async function take(
    asking: ServerName,
    roomId: RoomId,
    eventId: EventId,
    event: ReadJson,
    membership: WantedMembership['membership'],
  ): Promise<{ room: Room; json: string }> {
    const room = await roomFor(asking, roomId)
    const pdu = await membershipOf(room, asking, eventId, event, membership)
    const userId = pdu.sender
    await mustBeWelcome(room, asking, eventId, pdu)
    const signed =
      membership === 'join' ? await hideFromStrangers(asking, room, userId, resident.countersign(roomId, event)) : event
    const [received] = await receiver.receive(asking, roomId, [signed], 'accepted')
    if (received?.kind !== 'accepted' && received?.kind !== 'known') {
      const text = `The event was not accepted: ${received?.reason ?? 'for no reason that is known'}.`
      const refused = new ProtocolError(received?.kind === 'dropped' ? 'M_INVALID_PARAM' : 'M_FORBIDDEN', text)
      return hideFromStrangers(asking, room, userId, Promise.reject(refused))
    }
    const [stored] = await resident.events(roomId, [eventId])
    if (!stored) throw new ProtocolError('M_FORBIDDEN', 'The room does not accept this event.')
    // One that is sent again may have been taken in just before a crash.
    const isNow = received.kind === 'accepted' || (await room.stateEvent('m.room.member', userId))?.nid === stored.nid
    if (isNow) await parts.accepted(room, stored, asking)
    return { room, json: stored.json }
  }

  return {
    async make(asking, roomId, { membership, userId, versions }) {
      if (serverOf(userId) !== asking) {
        throw new ProtocolError('M_FORBIDDEN', `${asking} cannot speak for ${userId}.`)
      }
      const proposed = async () => {
        const room = await roomFor(asking, roomId)
        return { room, template: await templateFor(room, asking, userId, membership) }
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
      const omits = omitsMembers === true && room.counts.join > MEMBERS_TOLD_ANYWAY
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

/**
 * What can be seen from the event alone: that it is the change of the user's own membership that the request is for.
 * @throws ProtocolError `M_INVALID_PARAM`
 */
function requireMembership(
  room: Room,
  asking: ServerName,
  eventId: EventId,
  { value, offence }: ReadJson,
  membership: WantedMembership['membership'],
): Pdu {
  const read = readPdu(room.version, value, offence)
  if (isRefusal(read)) throw new ProtocolError('M_INVALID_PARAM', `The event is malformed: ${read.reason}.`)
  const { pdu } = read
  const flaws: readonly [boolean, string][] = [
    [read.eventId !== eventId, 'its id is another than that in the path'],
    [pdu.room_id !== room.id, 'it is for another room'],
    [pdu.type !== 'm.room.member' || pdu.content.membership !== membership, `it is no ${membership}`],
    [pdu.state_key !== pdu.sender, 'it is about another user than its sender'],
    [serverOf(pdu.sender) !== asking, 'its sender is not a user of your server'],
  ]
  const flaw = flaws.find(([isThere]) => isThere)
  if (flaw) throw new ProtocolError('M_INVALID_PARAM', `The event is not the one to be sent: ${flaw[1]}.`)
  return pdu
}
