import { ProtocolError } from '../../../core/errors.ts'
import { type RoomId, type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { InviteRemotely } from '../remote/remote-invites.ts'
import { mustBeMember } from '../room/not-in-room.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Appender } from '../write/append.ts'
import type { InvitePermission } from './invite-permission.ts'
import { memberDraft, membershipIn, untilMemberKnown } from './member-event.ts'
import type { PublicProfile } from './profile-events.ts'
import type { Rooms } from './rooms.ts'

export interface InviteParts {
  readonly appender: Appender
  readonly registry: RoomRegistry
  readonly serverName: ServerName
  readonly inviteRemotely: InviteRemotely
  /** The profile of a user, as member events repeat it; empty for users of other servers. */
  profileOf(userId: UserId): Promise<PublicProfile>
  /** Whether a local user of that id exists and may be invited. */
  isKnownUser(userId: UserId): Promise<boolean>
  readonly invitePermission: Pick<InvitePermission, 'require'>
}

/** How local users invite others: by an event of ours, which the server of a remote user must sign too. */
export function createInvite(parts: InviteParts): Rooms['invite'] {
  const { appender, registry, serverName, inviteRemotely } = parts

  async function inviteElsewhere(by: Requester, roomId: RoomId, target: UserId, reason: string | undefined) {
    const room = mustBeMember(await registry.get(roomId), by)
    if ((await membershipIn(room, target)) === 'invite') return
    await inviteRemotely(by, roomId, target, { membership: 'invite', ...(reason !== undefined && { reason }) })
  }

  return async (by, roomId, target, { reason }) => {
    if (serverOf(target) === serverName && !(await parts.isKnownUser(target))) {
      throw new ProtocolError('M_NOT_FOUND', `There is no user ${target} on this server.`)
    }
    await parts.invitePermission.require(by.userId, target)
    const profile = await parts.profileOf(target)
    await untilMemberKnown(registry, roomId, target)
    if (serverOf(target) !== serverName) return inviteElsewhere(by, roomId, target, reason)
    await appender.append(roomId, async (room) => {
      mustBeMember(room, by)
      if ((await membershipIn(room, target)) === 'invite') return []
      return [memberDraft(by, target, { membership: 'invite', ...profile }, reason)]
    })
  }
}
