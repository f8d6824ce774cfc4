import { membershipOf } from '../../core/event/content.ts'
import { isUserId, type RoomId, serverOf, type UserId } from '../../core/ids.ts'
import type { Rooms } from '../rooms/act/rooms.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Gate } from './gate.ts'

/** What users do in rooms, after the gate has let them. */
export function createGatedRooms(rooms: Rooms, gate: Gate, registry: Pick<RoomRegistry, 'get'>): Rooms {
  async function isInvited(userId: UserId, roomId: RoomId): Promise<boolean> {
    const room = await registry.get(roomId)
    return membershipOf(await room?.stateEvent('m.room.member', userId)) === 'invite'
  }

  async function setsMembership(by: UserId, roomId: RoomId, target: string, membership: unknown): Promise<void> {
    if (membership === 'invite' && isUserId(target)) await gate.invite(by, target, roomId)
    if ((membership === 'join' || membership === 'knock') && target === by) {
      const room = await registry.get(roomId)
      const before = membershipOf(await room?.stateEvent('m.room.member', by))
      if (before !== 'join') await gate.join(by, roomId, async () => before === 'invite')
    }
  }

  return {
    async create(by, request, offence) {
      await gate.createRoom(by.userId)
      if (request.room_alias_name !== undefined) {
        await gate.createAlias(by.userId, `#${request.room_alias_name}:${serverOf(by.userId)}`)
      }
      for (const target of request.invite ?? []) {
        // The room has no id yet.
        if (isUserId(target)) await gate.invite(by.userId, target, '' as RoomId)
      }
      return rooms.create(by, request, offence)
    },
    async join(by, roomId, details) {
      await gate.join(by.userId, roomId, () => isInvited(by.userId, roomId))
      await rooms.join(by, roomId, details)
    },
    async knock(by, roomId, details) {
      await gate.join(by.userId, roomId, async () => false)
      await rooms.knock(by, roomId, details)
    },
    async invite(by, roomId, target, details) {
      await gate.invite(by.userId, target, roomId)
      await rooms.invite(by, roomId, target, details)
    },
    send(by, roomId, type, sent, transaction) {
      if (!gate.judgesEvents) return rooms.send(by, roomId, type, sent, transaction)
      const event = { type, room_id: roomId, sender: by.userId, content: sent.content }
      return gate.event(by.userId, event).then(() => rooms.send(by, roomId, type, sent, transaction))
    },
    async setState(by, roomId, type, stateKey, sent, transaction) {
      if (type === 'm.room.member') await setsMembership(by.userId, roomId, stateKey, sent.content.membership)
      if (gate.judgesEvents) {
        const event = { type, room_id: roomId, sender: by.userId, state_key: stateKey, content: sent.content }
        await gate.event(by.userId, event)
      }
      return rooms.setState(by, roomId, type, stateKey, sent, transaction)
    },
    leave: rooms.leave,
    kick: rooms.kick,
    ban: rooms.ban,
    unban: rooms.unban,
    forget: rooms.forget,
    mustShareRoom: rooms.mustShareRoom,
    redact: rooms.redact,
  }
}
