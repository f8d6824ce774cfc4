import { ProtocolError } from '../../core/errors.ts'
import { joinAuthoriserOf } from '../../core/event/content.ts'
import type { Pdu, Refusal } from '../../core/event/format.ts'
import { readPdu } from '../../core/event/read.ts'
import { type EventId, isUserId, type RoomId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { isObject, type JsonObject, type ReadJson } from '../../core/json.ts'
import { ROOM_VERSIONS } from '../../core/room-version.ts'
import { isRefusal } from '../rooms/receive/pdu-checks.ts'
import type { Receiver } from '../rooms/receive/receive.ts'
import type { Template } from '../rooms/remote/admission.ts'
import { inviteStateEvents } from '../rooms/remote/invite-state.ts'
import type { JoinAnswer, Resident } from '../rooms/remote/resident.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { wholeRoom } from '../rooms/room/whole-room.ts'
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
    if (room.partialState?.lacksMembers && !(await access.mayKnowOf(asking, room))) throw notHere()
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
    room: Room,
    asking: ServerName,
    eventId: EventId,
    event: ReadJson,
    membership: WantedMembership['membership'],
  ): Promise<Pdu> {
    try {
      return requireFormat(room, eventId, event)
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
    if ((await access.standing(asking, await registry.get(roomId))) === 'refused') throw shutOut(asking)
    mustBeShaped(asking, roomId, event, membership)
    const room = await roomFor(asking, roomId)
    const pdu = await membershipOf(room, asking, eventId, event, membership)
    const userId = pdu.sender
    await mustBeWelcome(room, asking, eventId, pdu)
    const signed =
      membership === 'join' ? await hideFromStrangers(asking, room, userId, resident.countersign(roomId, event)) : event
    const [received] = await receiver.receive(asking, roomId, [signed], 'accepted')
    if (received?.kind !== 'accepted' && received?.kind !== 'known') {
      const text = `The event was not accepted: ${received?.reason ?? 'for no reason that is known'}.`
      // Its shape was looked at: what is dropped without being named has no good signature.
      const isIncomplete = received?.kind === 'dropped' && received.eventId !== undefined
      const refused = new ProtocolError(isIncomplete ? 'M_INVALID_PARAM' : 'M_FORBIDDEN', text)
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
 * What can be seen from the request alone, whatever room it is for, and so tells nobody whether there is such a room.
 * @throws ProtocolError `M_BAD_JSON`, `M_INVALID_PARAM`, `M_FORBIDDEN` for a user of another server
 */
function mustBeShaped(
  asking: ServerName,
  roomId: RoomId,
  { value, offence }: ReadJson,
  membership: WantedMembership['membership'],
): void {
  const versions = ROOM_VERSIONS.filter((version) => membership !== 'knock' || version.knocking)
  let read = readPdu(versions.at(-1)!, value, offence)
  // Most have the format of the newest.
  for (const version of versions.slice(0, -1).reverse()) if (isRefusal(read)) read = readPdu(version, value, offence)
  if (isRefusal(read)) throw malformed(read)
  const { pdu } = read
  const flaws: readonly [boolean, string][] = [
    [pdu.room_id !== roomId, 'it is for another room'],
    [pdu.type !== 'm.room.member' || pdu.content.membership !== membership, `it is no ${membership}`],
    [pdu.state_key !== pdu.sender, 'it is about another user than its sender'],
  ]
  const flaw = flaws.find(([isThere]) => isThere)
  if (flaw) throw notTheOne(flaw[1])
  if (serverOf(pdu.sender) !== asking) {
    throw new ProtocolError('M_FORBIDDEN', `${asking} cannot speak for ${pdu.sender}.`)
  }
}

/** What an event is told that cannot be read as one. */
export function malformed({ errcode, reason }: Refusal): ProtocolError {
  return new ProtocolError(errcode === 'M_BAD_JSON' ? errcode : 'M_INVALID_PARAM', `The event is malformed: ${reason}.`)
}

export function notTheOne(why: string): ProtocolError {
  return new ProtocolError('M_INVALID_PARAM', `The event is not the one to be sent: ${why}.`)
}

/**
 * What takes the version of the room to be seen: the format of the event, and its id.
 * @throws ProtocolError `M_BAD_JSON`, `M_INVALID_PARAM`
 */
function requireFormat(room: Room, eventId: EventId, { value, offence }: ReadJson): Pdu {
  const read = readPdu(room.version, value, offence)
  if (isRefusal(read)) throw malformed(read)
  if (read.eventId !== eventId) throw notTheOne('its id is another than that in the path')
  return read.pdu
}
