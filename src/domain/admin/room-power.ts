import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { joinRuleOf, membershipOf } from '../../core/event/content.ts'
import type { RoomId, UserId } from '../../core/ids.ts'
import { isObject } from '../../core/json.ts'
import { compareIntegers, type Integer } from '../../core/large-integers.ts'
import type { Database } from '../../store/db/db.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Rooms } from '../rooms/act/rooms.ts'
import { powerLevelsOf } from '../rooms/room/power.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { LocalMember, Room } from '../rooms/room/room.ts'
import type { Appender } from '../rooms/write/append.ts'
import { activeAccount, onBehalfOf } from './local-account.ts'
import type { Operator } from './operator.ts'

/** What operators do in rooms with the power levels of local users. */
export interface RoomPower {
  /**
   * Gives a user the highest power level of any local user in the room, and invites them if they could not join otherwise.
   * @throws ProtocolError `M_NOT_FOUND`, `M_FORBIDDEN` if no local user has the power to do so
   */
  makeAdmin(roomId: RoomId, userId: UserId): Promise<void>
  /**
   * Joins a local user. If the room is not public and the operator is in it, invites the user first. @throws ProtocolError `M_FORBIDDEN`
   */
  join(by: Operator, roomId: RoomId, userId: UserId): Promise<void>
}

export interface RoomPowerParts {
  readonly config: Pick<Config, 'server_name'>
  readonly db: Database
  readonly registry: RoomRegistry
  readonly appender: Appender
  readonly rooms: Rooms
}

/** The level that creators give others, if they themselves stand above every level. */
const HIGHEST_GIVEN = 100

export function createRoomPower(parts: RoomPowerParts): RoomPower {
  const { db, registry, appender, rooms, config } = parts
  const account = async (userId: UserId) => onBehalfOf(await activeAccount(db, userId, config.server_name))

  async function mustKnow(roomId: RoomId): Promise<Room> {
    const room = await registry.get(roomId)
    if (room) return room
    throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
  }

  /** The local user with the most power in the room, if that is enough to give it. */
  async function strongest(room: Room): Promise<LocalMember & { readonly level: Integer }> {
    const levels = await powerLevelsOf(room)
    const [first] = [...room.localMembers.values()]
      .map((member) => ({ ...member, level: levels.levelOf(member.userId) }))
      .sort((a, b) => compareIntegers(b.level, a.level))
    if (first && first.level >= levels.toSend('m.room.power_levels', true)) return first
    throw new ProtocolError('M_FORBIDDEN', 'Nobody of this server may change the power levels of the room.')
  }

  async function isOpenTo(room: Room, { userId }: Requester): Promise<boolean> {
    if (joinRuleOf(await room.stateEvent('m.room.join_rules', '')) === 'public') return true
    const membership = membershipOf(await room.stateEvent('m.room.member', userId))
    return membership === 'join' || membership === 'invite'
  }

  return {
    async makeAdmin(roomId, userId) {
      const user = await account(userId)
      const giver = await strongest(await mustKnow(roomId))
      const level = giver.level < HIGHEST_GIVEN ? giver.level : HIGHEST_GIVEN
      await appender.append(roomId, async (room) => {
        const levels = await powerLevelsOf(room)
        if (levels.levelOf(userId) >= level) return []
        const current = (await room.stateEvent('m.room.power_levels', '', room.pending.state))?.content ?? {}
        // Creators above every level are not in the list. Others would lose their level without an entry.
        const own = giver.level === Number.POSITIVE_INFINITY ? {} : { [giver.userId]: giver.level }
        const users = { ...(isObject(current.users) ? current.users : own), [userId]: level }
        const by = { sender: giver.userId, senderNid: giver.userNid }
        return [{ type: 'm.room.power_levels', stateKey: '', content: { ...current, users }, ...by }]
      })
      const room = await mustKnow(roomId)
      if (await isOpenTo(room, user)) return
      await rooms.invite(onBehalfOf({ user_id: giver.userId, user_nid: giver.userNid }), roomId, userId, {})
    },
    async join(by, roomId, userId) {
      const user = await account(userId)
      const room = await mustKnow(roomId)
      if (by.requester && !(await isOpenTo(room, user))) await rooms.invite(by.requester, roomId, userId, {})
      await rooms.join(user, roomId, {})
    },
  }
}
