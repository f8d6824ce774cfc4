import { ProtocolError } from '../../../core/errors.ts'
import type { Membership } from '../../../core/event/content.ts'
import type { RoomId, UserId } from '../../../core/ids.ts'
import type { Database } from '../../../store/db/db.ts'
import { forgetRoom } from '../../../store/rooms/rooms.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Decline } from '../remote/decline.ts'
import type { RemoteMembers } from '../remote/remote-members.ts'
import { mustBeMember } from '../room/not-in-room.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Appender } from '../write/append.ts'
import { memberDraft, membershipIn, untilMemberKnown, wasMember } from './member-event.ts'
import type { Rooms } from './rooms.ts'

export interface LeaveAndBanParts {
  readonly db: Database
  readonly appender: Appender
  readonly registry: RoomRegistry
  readonly remoteMembers: RemoteMembers
  readonly decline: Decline
}

/** How local users leave rooms, and kick, ban and unban others. */
export function createLeaveAndBan(parts: LeaveAndBanParts): Pick<Rooms, 'leave' | 'kick' | 'ban' | 'unban' | 'forget'> {
  const { db, appender, registry, remoteMembers, decline } = parts

  /** Ends a membership: kicks, rejects, unbans. `from` names the memberships that it may end. */
  async function setLeave(
    by: Requester,
    roomId: RoomId,
    target: UserId,
    from: readonly Membership[],
    refusal: string,
    reason: string | undefined,
  ): Promise<void> {
    await untilMemberKnown(registry, roomId, target)
    await appender.append(roomId, async (room) => {
      if (by.userId !== target) mustBeMember(room, by)
      const membership = await membershipIn(room, target)
      if (by.userId === target && membership === 'leave' && (await wasMember(room, target))) return []
      if (!from.includes(membership)) {
        const errcode = from.includes('ban') ? 'M_BAD_STATE' : 'M_FORBIDDEN'
        throw new ProtocolError(errcode, refusal, { status: 403 })
      }
      return [memberDraft(by, target, { membership: 'leave' }, reason)]
    })
  }

  return {
    async leave(by, roomId, { reason }) {
      const pending = await remoteMembers.pendingOf(by.userNid, roomId)
      if (pending) return decline(by, pending, reason)
      await setLeave(by, roomId, by.userId, ['join', 'invite', 'knock'], 'You are not in this room.', reason)
    },

    kick: (by, roomId, target, { reason }) =>
      setLeave(by, roomId, target, ['join', 'invite', 'knock'], `${target} is not in this room.`, reason),

    async ban(by, roomId, target, { reason }) {
      await untilMemberKnown(registry, roomId, target)
      await appender.append(roomId, async (room) => {
        mustBeMember(room, by)
        if ((await membershipIn(room, target)) === 'ban') return []
        return [memberDraft(by, target, { membership: 'ban' }, reason)]
      })
    },

    unban: (by, roomId, target, { reason }) =>
      setLeave(by, roomId, target, ['ban'], `${target} is not banned from this room.`, reason),

    async forget(by, roomId) {
      const room = await registry.get(roomId)
      const membership = room && (await membershipIn(room, by.userId))
      if (!room || !(await wasMember(room, by.userId)))
        throw new ProtocolError('M_NOT_FOUND', 'You have never been in this room.')
      if (membership !== 'leave' && membership !== 'ban') {
        throw new ProtocolError('M_UNKNOWN', 'Leave the room before you forget it.', { status: 400 })
      }
      await db.tx((tx) => forgetRoom(tx, by.userNid, room.nid))
    },
  }
}
