import { ProtocolError } from '../../../core/errors.ts'
import { membershipOf } from '../../../core/event/content.ts'
import { isUserId, serverOf } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { RoomBlocks } from '../room/blocks.ts'
import { createJointCalls } from '../room/joint-calls.ts'
import type { NoticeRooms } from '../room/notice-rooms.ts'
import type { Room } from '../room/room.ts'
import { admitGuest } from './guests.ts'
import { createInvite, type InviteParts } from './invite.ts'
import { createJoinAndKnock, type JoinAndKnockParts } from './join-and-knock.ts'
import { createLeaveAndBan, type LeaveAndBanParts } from './leave-and-ban.ts'
import type { Rooms } from './rooms.ts'

export interface MembershipParts extends JoinAndKnockParts, LeaveAndBanParts, InviteParts {}

export type MembershipActions = Pick<Rooms, 'join' | 'knock' | 'leave' | 'invite' | 'kick' | 'ban' | 'unban' | 'forget'>

/** Clients repeat these requests while they wait for another server. A repeat joins the one that is in flight. */
export function createMembership(parts: MembershipParts): MembershipActions {
  const calls = createJointCalls()
  const { join, knock } = createJoinAndKnock(parts)
  const { leave, kick, ban, unban, forget } = createLeaveAndBan(parts)
  const invite = createInvite(parts)

  return {
    join: (by, roomId, details) => calls.run(['join', by.userId, roomId, details], () => join(by, roomId, details)),
    knock: (by, roomId, details) => calls.run(['knock', by.userId, roomId, details], () => knock(by, roomId, details)),
    leave: (by, roomId, details) => calls.run(['leave', by.userId, roomId, details], () => leave(by, roomId, details)),
    invite,
    kick,
    ban,
    unban,
    forget,
  }
}

/**
 * What joining and inviting require besides the auth rules, for memberships that are set like any other state.
 *
 * @throws ProtocolError `M_GUEST_ACCESS_FORBIDDEN`, `M_NOT_FOUND`
 */
export function createMemberCheck({
  serverName,
  isKnownUser,
  invitePermission,
  blocks,
  noticeRooms,
}: Pick<MembershipParts, 'serverName' | 'isKnownUser' | 'invitePermission'> & {
  readonly blocks: Pick<RoomBlocks, 'mustBeFree'>
  readonly noticeRooms: NoticeRooms
}) {
  return async (by: Requester, room: Room, target: string, content: JsonObject): Promise<void> => {
    const isOwn = target === by.userId
    if (content.membership === 'join' || content.membership === 'invite') await blocks.mustBeFree(room.id)
    if (isOwn && content.membership === 'leave') await noticeRooms.mayLeave(by, room.id)
    if (isOwn && by.isGuest && content.membership === 'join') {
      const before = membershipOf(await room.stateEvent('m.room.member', target, room.pending.state))
      if (before !== 'join') await admitGuest(room)
    }
    if (content.membership !== 'invite' || !isUserId(target) || serverOf(target) !== serverName) return
    if (!(await isKnownUser(target)))
      throw new ProtocolError('M_NOT_FOUND', `There is no user ${target} on this server.`)
    await invitePermission.require(by.userId, target)
  }
}
