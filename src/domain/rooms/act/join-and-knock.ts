import { ProtocolError } from '../../../core/errors.ts'
import type { RoomId, ServerName, UserId } from '../../../core/ids.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { ResidentServers } from '../remote/resident-servers.ts'
import { authoriserFor } from '../remote/restricted-join.ts'
import type { Appender } from '../write/append.ts'
import { admitGuest } from './guests.ts'
import { memberDraft, membershipIn, untilMemberKnown, wasMember } from './member-event.ts'
import type { PublicProfile } from './profile-events.ts'
import type { Rooms, SignedForInvite } from './rooms.ts'
import type { ThirdPartyInvites } from './third-party-invites.ts'
import { createViaServers, type ViaServerParts } from './via-servers.ts'

export interface JoinAndKnockParts extends ViaServerParts {
  readonly appender: Appender
  readonly thirdPartyInvites: ThirdPartyInvites
  readonly residentServers: ResidentServers
  /** The profile of a user, as member events repeat it; empty for users of other servers. */
  profileOf(userId: UserId): Promise<PublicProfile>
}

/** How local users join a room or knock: by an event of ours, or through a resident server if none of our users is in the room. */
export function createJoinAndKnock(parts: JoinAndKnockParts): Pick<Rooms, 'join' | 'knock'> {
  const { appender, registry, residentServers, thirdPartyInvites, remoteMembers } = parts
  const viaServers = createViaServers(parts)

  async function claimInvitation(by: Requester, roomId: RoomId, signed: SignedForInvite): Promise<void> {
    const { sender, mxid } = signed
    if (mxid !== by.userId) {
      throw new ProtocolError('M_FORBIDDEN', `This invitation was signed for ${mxid}, not for you.`)
    }
    await thirdPartyInvites.claim({ roomId, sender, target: mxid, signed: { ...signed } })
  }

  /** A user without any membership in a room that refuses them gets the same error as for a room that does not exist. */
  async function hideFromStrangers(by: Requester, roomId: RoomId, error: unknown): Promise<never> {
    const room = await registry.get(roomId)
    const isRefused = error instanceof ProtocolError && error.errcode === 'M_FORBIDDEN'
    if (!isRefused || (room && (await wasMember(room, by.userId)))) throw error
    throw new ProtocolError('M_FORBIDDEN', 'There is no such room, or it is not open to you.')
  }

  return {
    async join(by, roomId, { reason, third_party_signed: signedFor, via = [], others = {} }) {
      if (signedFor !== undefined) await claimInvitation(by, roomId, signedFor)
      const profile = await parts.profileOf(by.userId)
      const remotely = (servers: readonly ServerName[]) => {
        const content = { ...others, ...profile, ...(reason !== undefined && { reason }) }
        return residentServers.join({ roomId, userId: by.userId, content, via: servers })
      }
      const servers = await viaServers.into(by, roomId, via)
      if (servers !== undefined) {
        if (by.isGuest)
          throw new ProtocolError('M_GUEST_ACCESS_FORBIDDEN', 'Guests may only join rooms of this server.')
        return remotely(servers)
      }
      await untilMemberKnown(registry, roomId, by.userId)
      const joining = appender.append(roomId, async (room) => {
        if ((await membershipIn(room, by.userId)) === 'join') return []
        if (by.isGuest) await admitGuest(room)
        const authoriser = await authoriserFor(registry, room, by.userId)
        const admitted = authoriser === undefined ? {} : { join_authorised_via_users_server: authoriser }
        return [memberDraft(by, by.userId, { ...others, membership: 'join', ...profile, ...admitted }, reason)]
      })
      await joining.catch(async (error: unknown) => {
        const residents = isBeyondUs(error) ? await viaServers.inRoom(roomId) : []
        return residents.length === 0 ? hideFromStrangers(by, roomId, error) : remotely(residents)
      })
    },

    async knock(by, roomId, { reason, via = [] }) {
      const profile = await parts.profileOf(by.userId)
      const servers = await viaServers.into(by, roomId, via)
      if (servers !== undefined) {
        const content = { ...profile, ...(reason !== undefined && { reason }) }
        const knock = await residentServers.knock({ roomId, userId: by.userId, content, via: servers })
        return remoteMembers.record({ version: knock.version, roomId, ...knock.built, state: knock.shown })
      }
      await untilMemberKnown(registry, roomId, by.userId)
      const knocking = appender.append(roomId, async (room) => {
        if ((await membershipIn(room, by.userId)) === 'knock') return []
        return [memberDraft(by, by.userId, { membership: 'knock', ...profile }, reason)]
      })
      await knocking.catch((error: unknown) => hideFromStrangers(by, roomId, error))
    },
  }
}

/** Whether another server may let the user in where ours cannot tell, or has no member who may do it (rooms, "Restricted rooms"). */
function isBeyondUs(error: unknown): boolean {
  if (!(error instanceof ProtocolError)) return false
  return error.errcode === 'M_UNABLE_TO_GRANT_JOIN' || error.errcode === 'M_UNABLE_TO_AUTHORISE_JOIN'
}
