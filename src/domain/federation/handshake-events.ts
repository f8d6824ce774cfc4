import { ProtocolError } from '../../core/errors.ts'
import { joinAuthoriserOf } from '../../core/event/content.ts'
import type { Pdu, Refusal } from '../../core/event/format.ts'
import { readPdu } from '../../core/event/read.ts'
import { type EventId, isUserId, type RoomId, type ServerName, serverOf, type UserId } from '../../core/ids.ts'
import { isObject, type ReadJson } from '../../core/json.ts'
import { ROOM_VERSIONS } from '../../core/room-version.ts'
import { isRefusal } from '../rooms/receive/pdu-checks.ts'
import type { Receiver } from '../rooms/receive/receive.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { HandshakeMembership, HandshakeRoomParts, HandshakeRooms } from './handshake-rooms.ts'
import { shutOut } from './server-access.ts'

/**
 * Processes the signed event with which a handshake ends (`send_join`, `send_leave`, `send_knock`). Returns the event as the room has it,
 * as canonical JSON.
 *
 * @throws ProtocolError as {@link HandshakeRooms.roomFor}; `M_BAD_JSON`, `M_INVALID_PARAM`, `M_FORBIDDEN`
 */
export type TakeHandshakeEvent = (
  asking: ServerName,
  roomId: RoomId,
  eventId: EventId,
  event: ReadJson,
  membership: HandshakeMembership,
) => Promise<{ readonly room: Room; readonly json: string }>

export interface HandshakeEventParts extends HandshakeRoomParts {
  readonly serverName: ServerName
  readonly receiver: Receiver
  /**
   * Forwards an event that came by a handshake, since nobody else sends it to the other servers. Resolves once it is sure to be
   * forwarded.
   */
  accepted(room: Room, event: RoomEvent, from: ServerName): Promise<void>
}

export function createTakeHandshakeEvent(parts: HandshakeEventParts, rooms: HandshakeRooms): TakeHandshakeEvent {
  const { registry, resident, receiver, access } = parts

  /** Only a server that could get a template for the room learns what is wrong with an event. Others get the template's error. */
  async function membershipOf(
    room: Room,
    asking: ServerName,
    eventId: EventId,
    event: ReadJson,
    membership: HandshakeMembership,
  ): Promise<Pdu> {
    try {
      return requireFormat(room, eventId, event)
    } catch (error) {
      const { sender } = isObject(event.value) ? event.value : {}
      const userId = isUserId(sender) ? sender : (`@:${asking}` as UserId)
      await rooms.templateFor(room, asking, userId, membership)
      throw error
    }
  }

  /**
   * Checks, before anything is fetched or stored for an event, that the room would accept it now. It skips an event that was accepted
   * before, and a join that another server's member authorised: that server knows more than we do.
   */
  async function mustBeWelcome(room: Room, asking: ServerName, eventId: EventId, pdu: Pdu): Promise<void> {
    const authoriser = room.version.restrictedJoins ? joinAuthoriserOf(pdu.content) : undefined
    if (isUserId(authoriser) && serverOf(authoriser) !== parts.serverName) return
    if ((await resident.events(room.id, [eventId])).length > 0) return
    await rooms.templateFor(room, asking, pdu.sender, pdu.content.membership as HandshakeMembership)
  }

  return async (asking, roomId, eventId, event, membership) => {
    if ((await access.standing(asking, await registry.get(roomId))) === 'refused') throw shutOut(asking)
    mustBeShaped(asking, roomId, event, membership)
    const room = await rooms.roomFor(asking, roomId)
    const pdu = await membershipOf(room, asking, eventId, event, membership)
    const userId = pdu.sender
    await mustBeWelcome(room, asking, eventId, pdu)
    const signed =
      membership === 'join'
        ? await rooms.hideFromStrangers(asking, room, userId, resident.countersign(roomId, event))
        : event
    const [received] = await receiver.receive(asking, roomId, [signed], 'accepted')
    if (received?.kind !== 'accepted' && received?.kind !== 'known') {
      const text = `The event was not accepted: ${received?.reason ?? 'for no reason that is known'}.`
      // The shape was checked before. So an event that is dropped without a reason has no valid signature.
      const isIncomplete = received?.kind === 'dropped' && received.eventId !== undefined
      const refused = new ProtocolError(isIncomplete ? 'M_INVALID_PARAM' : 'M_FORBIDDEN', text)
      return rooms.hideFromStrangers(asking, room, userId, Promise.reject(refused))
    }
    const [stored] = await resident.events(roomId, [eventId])
    if (!stored) throw new ProtocolError('M_FORBIDDEN', 'The room does not accept this event.')
    // A repeated event may have been accepted just before a crash.
    const isNow = received.kind === 'accepted' || (await room.stateEvent('m.room.member', userId))?.nid === stored.nid
    if (isNow) await parts.accepted(room, stored, asking)
    return { room, json: stored.json }
  }
}

/**
 * Checks what the request alone shows, whatever room it is for. So the error does not reveal whether the room exists.
 * @throws ProtocolError `M_BAD_JSON`, `M_INVALID_PARAM`, `M_FORBIDDEN` for a user of another server
 */
function mustBeShaped(
  asking: ServerName,
  roomId: RoomId,
  { value, offence }: ReadJson,
  membership: HandshakeMembership,
): void {
  const versions = ROOM_VERSIONS.filter((version) => membership !== 'knock' || version.knocking)
  let read = readPdu(versions.at(-1)!, value, offence)
  // Most events have the format of the newest version.
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

/** The error for an event that cannot be parsed. */
export function malformed({ errcode, reason }: Refusal): ProtocolError {
  return new ProtocolError(errcode === 'M_BAD_JSON' ? errcode : 'M_INVALID_PARAM', `The event is malformed: ${reason}.`)
}

export function notTheOne(why: string): ProtocolError {
  return new ProtocolError('M_INVALID_PARAM', `The event is not the one to be sent: ${why}.`)
}

/**
 * Checks what depends on the room's version: the event's format, and its id.
 * @throws ProtocolError `M_BAD_JSON`, `M_INVALID_PARAM`
 */
function requireFormat(room: Room, eventId: EventId, { value, offence }: ReadJson): Pdu {
  const read = readPdu(room.version, value, offence)
  if (isRefusal(read)) throw malformed(read)
  if (read.eventId !== eventId) throw notTheOne('its id is another than that in the path')
  return read.pdu
}
