import { ProtocolError } from '../../../core/errors.ts'
import { type Membership, membershipOf } from '../../../core/event/content.ts'
import { isUserId, type RoomId, type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import { compareIntegers } from '../../../core/large-integers.ts'
import type { Database } from '../../../store/db/db.ts'
import { forgetRoom } from '../../../store/rooms/rooms.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Decline } from '../remote/decline.ts'
import type { InviteRemotely } from '../remote/remote-invites.ts'
import type { RemoteMembers } from '../remote/remote-members.ts'
import { makerOf, type ResidentServers } from '../remote/resident-servers.ts'
import { authoriserFor } from '../remote/restricted-join.ts'
import type { RoomBlocks } from '../room/blocks.ts'
import { serversToTell } from '../room/destinations.ts'
import { createJointCalls } from '../room/joint-calls.ts'
import { mustBeMember } from '../room/not-in-room.ts'
import type { NoticeRooms } from '../room/notice-rooms.ts'
import { powerLevelsOf } from '../room/power.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import { wholeRoom } from '../room/whole-room.ts'
import type { Appender } from '../write/append.ts'
import type { Draft } from '../write/draft.ts'
import { admitGuest } from './guests.ts'
import type { PublicProfile } from './profile-events.ts'
import type { Rooms, SignedForInvite } from './rooms.ts'
import type { ThirdPartyInvites } from './third-party-invites.ts'

export interface MembershipParts {
  readonly db: Database
  readonly appender: Appender
  readonly registry: RoomRegistry
  readonly serverName: ServerName
  readonly thirdPartyInvites: ThirdPartyInvites
  readonly residentServers: ResidentServers
  readonly remoteMembers: RemoteMembers
  readonly decline: Decline
  readonly inviteRemotely: InviteRemotely
  /** What a user shows of themselves in the rooms they are in; nothing for users of other servers. */
  profileOf(userId: UserId): Promise<PublicProfile>
  /** Whether a local user of that id exists and may be invited. */
  isKnownUser(userId: UserId): Promise<boolean>
}

export type MembershipActions = Pick<Rooms, 'join' | 'knock' | 'leave' | 'invite' | 'kick' | 'ban' | 'unban' | 'forget'>

/** Repeated while they are under way, as clients do that wait for another server, they are done once. */
export function createMembership(parts: MembershipParts): MembershipActions {
  const calls = createJointCalls()
  const actions = createActions(parts)

  return {
    ...actions,
    join: (by, roomId, details) =>
      calls.run(['join', by.userId, roomId, details], () => actions.join(by, roomId, details)),
    knock: (by, roomId, details) =>
      calls.run(['knock', by.userId, roomId, details], () => actions.knock(by, roomId, details)),
    leave: (by, roomId, details) =>
      calls.run(['leave', by.userId, roomId, details], () => actions.leave(by, roomId, details)),
  }
}

function createActions(parts: MembershipParts): MembershipActions {
  const { appender } = parts

  function change(by: Requester, target: UserId, content: JsonObject, reason: string | undefined): Draft {
    return {
      type: 'm.room.member',
      stateKey: target,
      content: reason === undefined ? content : { ...content, reason },
      sender: by.userId,
      senderNid: by.userNid,
    }
  }

  /** While most members are not known, whoever wants to do something about one waits. */
  async function untilKnown(roomId: RoomId, userId: UserId): Promise<void> {
    const room = await parts.registry.get(roomId)
    if (room?.partialState?.lacksMembers && !(await wasMember(room, userId))) await wholeRoom(parts.registry, room)
  }

  async function membershipIn(room: Room, userId: UserId): Promise<Membership> {
    return membershipOf(await room.stateEvent('m.room.member', userId, room.pending.state))
  }

  /** Takes back a membership: kicking, rejecting, unbanning. `from` names what must be there to be taken back. */
  async function setLeave(
    by: Requester,
    roomId: RoomId,
    target: UserId,
    from: readonly Membership[],
    refusal: string,
    reason: string | undefined,
  ): Promise<void> {
    await untilKnown(roomId, target)
    await appender.append(roomId, async (room) => {
      if (by.userId !== target) mustBeMember(room, by)
      const membership = await membershipIn(room, target)
      if (by.userId === target && membership === 'leave' && (await wasMember(room, target))) return []
      if (!from.includes(membership)) {
        const errcode = from.includes('ban') ? 'M_BAD_STATE' : 'M_FORBIDDEN'
        throw new ProtocolError(errcode, refusal, { status: 403 })
      }
      return [change(by, target, { membership: 'leave' }, reason)]
    })
  }

  async function claimInvitation(by: Requester, roomId: RoomId, signed: SignedForInvite): Promise<void> {
    const { sender, mxid } = signed
    if (mxid !== by.userId) {
      throw new ProtocolError('M_FORBIDDEN', `This invitation was signed for ${mxid}, not for you.`)
    }
    await parts.thirdPartyInvites.claim({ roomId, sender, target: mxid, signed: { ...signed } })
  }

  /** The servers by which a room has to be entered that none of our users is in; undefined when it is ours to change. */
  async function waysInto(
    by: Requester,
    roomId: RoomId,
    via: readonly ServerName[],
  ): Promise<readonly ServerName[] | undefined> {
    const room = await parts.registry.get(roomId)
    if (room && room.committed.extremities.length > 0) {
      if (room.localMembers.size > 0 || !room.isShared) return undefined
    }
    const known = room ? await serversToTell(parts.db, room) : undefined
    const pending = await parts.remoteMembers.pendingOf(by.userNid, roomId)
    const inviter = pending ? [serverOf(pending.event.sender)] : []
    const ways = [...new Set([...inviter, ...via, ...makerOf(roomId), ...(known?.keys() ?? [])])].filter(
      (server) => server !== parts.serverName,
    )
    // Told apart from a room that others know, there being nobody to ask.
    return ways.length === 0 ? undefined : ways
  }

  /** The other servers in a room, those of members with most power first: who may let others in is among these. */
  async function serversOf(roomId: RoomId): Promise<ServerName[]> {
    const room = await parts.registry.get(roomId)
    if (!room) return []
    const joined = await serversToTell(parts.db, room)
    const levels = await powerLevelsOf(room)
    const mighty = [...room.keys.ofType('m.room.member')]
      .map(([userId]) => ({ server: serverOf(userId as UserId), level: levels.levelOf(userId) }))
      .filter(({ server, level }) => joined.has(server) && level >= levels.invite)
      .sort((one, other) => compareIntegers(other.level, one.level))
    const servers = new Set([...mighty.map(({ server }) => server), ...joined.keys()])
    return [...servers].filter((server) => server !== parts.serverName)
  }

  async function inviteElsewhere(by: Requester, roomId: RoomId, target: UserId, reason: string | undefined) {
    const room = mustBeMember(await parts.registry.get(roomId), by)
    if ((await membershipIn(room, target)) === 'invite') return
    await parts.inviteRemotely(by, roomId, target, { membership: 'invite', ...(reason !== undefined && { reason }) })
  }

  /** Who never had to do with a room that does not let them in hears the same as if there were none. */
  async function hideFromStrangers(by: Requester, roomId: RoomId, error: unknown): Promise<never> {
    const room = await parts.registry.get(roomId)
    const isRefused = error instanceof ProtocolError && error.errcode === 'M_FORBIDDEN'
    if (!isRefused || (room && (await wasMember(room, by.userId)))) throw error
    throw new ProtocolError('M_FORBIDDEN', 'There is no such room, or it is not open to you.')
  }

  async function wasMember(room: Room, userId: UserId): Promise<boolean> {
    return (await room.stateEvent('m.room.member', userId, room.pending.state)) !== undefined
  }

  return {
    async join(by, roomId, { reason, third_party_signed: signedFor, via = [], others = {} }) {
      if (signedFor !== undefined) await claimInvitation(by, roomId, signedFor)
      const profile = await parts.profileOf(by.userId)
      const ways = await waysInto(by, roomId, via)
      if (ways !== undefined) {
        if (by.isGuest)
          throw new ProtocolError('M_GUEST_ACCESS_FORBIDDEN', 'Guests may only join rooms of this server.')
        const content = { ...others, ...profile, ...(reason !== undefined && { reason }) }
        return parts.residentServers.join({ roomId, userId: by.userId, content, via: ways })
      }
      await untilKnown(roomId, by.userId)
      const joining = appender.append(roomId, async (room) => {
        if ((await membershipIn(room, by.userId)) === 'join') return []
        if (by.isGuest) await admitGuest(room)
        const authoriser = await authoriserFor(parts.registry, room, by.userId)
        const admitted = authoriser === undefined ? {} : { join_authorised_via_users_server: authoriser }
        return [change(by, by.userId, { ...others, membership: 'join', ...profile, ...admitted }, reason)]
      })
      await joining.catch(async (error: unknown) => {
        const via = isBeyondUs(error) ? await serversOf(roomId) : []
        if (via.length === 0) return hideFromStrangers(by, roomId, error)
        const content = { ...others, ...profile, ...(reason !== undefined && { reason }) }
        return parts.residentServers.join({ roomId, userId: by.userId, content, via })
      })
    },

    async knock(by, roomId, { reason, via = [] }) {
      const profile = await parts.profileOf(by.userId)
      const ways = await waysInto(by, roomId, via)
      if (ways !== undefined) {
        const content = { ...profile, ...(reason !== undefined && { reason }) }
        const { version, built, shown } = await parts.residentServers.knock({
          roomId,
          userId: by.userId,
          content,
          via: ways,
        })
        return parts.remoteMembers.record({ version, roomId, ...built, state: shown })
      }
      await untilKnown(roomId, by.userId)
      const knocking = appender.append(roomId, async (room) => {
        if ((await membershipIn(room, by.userId)) === 'knock') return []
        return [change(by, by.userId, { membership: 'knock', ...profile }, reason)]
      })
      await knocking.catch((error: unknown) => hideFromStrangers(by, roomId, error))
    },

    async leave(by, roomId, { reason }) {
      const pending = await parts.remoteMembers.pendingOf(by.userNid, roomId)
      if (pending) return parts.decline(by, pending, reason)
      await setLeave(by, roomId, by.userId, ['join', 'invite', 'knock'], 'You are not in this room.', reason)
    },

    async invite(by, roomId, target, { reason }) {
      if (serverOf(target) === parts.serverName && !(await parts.isKnownUser(target))) {
        throw new ProtocolError('M_NOT_FOUND', `There is no user ${target} on this server.`)
      }
      const profile = await parts.profileOf(target)
      await untilKnown(roomId, target)
      if (serverOf(target) !== parts.serverName) return inviteElsewhere(by, roomId, target, reason)
      await appender.append(roomId, async (room) => {
        mustBeMember(room, by)
        if ((await membershipIn(room, target)) === 'invite') return []
        return [change(by, target, { membership: 'invite', ...profile }, reason)]
      })
    },

    kick: (by, roomId, target, { reason }) =>
      setLeave(by, roomId, target, ['join', 'invite', 'knock'], `${target} is not in this room.`, reason),

    async ban(by, roomId, target, { reason }) {
      await untilKnown(roomId, target)
      await appender.append(roomId, async (room) => {
        mustBeMember(room, by)
        if ((await membershipIn(room, target)) === 'ban') return []
        return [change(by, target, { membership: 'ban' }, reason)]
      })
    },

    unban: (by, roomId, target, { reason }) =>
      setLeave(by, roomId, target, ['ban'], `${target} is not banned from this room.`, reason),

    async forget(by, roomId) {
      const room = await parts.registry.get(roomId)
      const membership = room && (await membershipIn(room, by.userId))
      if (!room || !(await wasMember(room, by.userId)))
        throw new ProtocolError('M_NOT_FOUND', 'You have never been in this room.')
      if (membership !== 'leave' && membership !== 'ban') {
        throw new ProtocolError('M_UNKNOWN', 'Leave the room before you forget it.', { status: 400 })
      }
      await parts.db.tx((tx) => forgetRoom(tx, by.userNid, room.nid))
    },
  }
}

/**
 * What joining and inviting take beside the rules of the room, for memberships that are set as any other state.
 *
 * @throws ProtocolError `M_GUEST_ACCESS_FORBIDDEN`, `M_NOT_FOUND`
 */
export function createMemberCheck({
  serverName,
  isKnownUser,
  blocks,
  noticeRooms,
}: Pick<MembershipParts, 'serverName' | 'isKnownUser'> & {
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
  }
}

/** Whether another server may let somebody in where ours cannot tell that it may, or has nobody to do it (rooms, "Restricted rooms"). */
function isBeyondUs(error: unknown): boolean {
  if (!(error instanceof ProtocolError)) return false
  return error.errcode === 'M_UNABLE_TO_GRANT_JOIN' || error.errcode === 'M_UNABLE_TO_AUTHORISE_JOIN'
}
