import type { Logger } from 'pino'
import { vouchingKeys } from '../../../core/auth/third-party-invite.ts'
import { ProtocolError } from '../../../core/errors.ts'
import { membershipOf } from '../../../core/event/content.ts'
import { isRoomId, isUserId, type RoomId, type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import { isObject, type JsonObject, type JsonValue } from '../../../core/json.ts'
import { createKeyedQueue } from '../../../core/keyed-queue.ts'
import type { Peers } from '../../../outbound/peers.ts'
import { MAX_INVITES_OF_A_BIND } from '../../limits.ts'
import type { Users } from '../../users.ts'
import type { InviteRemotely } from '../remote/remote-invites.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { Appender } from '../write/append.ts'
import type { AskedIdentityServers } from './identity-servers.ts'
import type { PublicProfile } from './profile-events.ts'

/** A claim to an invitation that was made to an address. `signed` is the identity server's statement. */
export interface InviteClaim {
  readonly roomId: RoomId
  /** The user who invited the address. */
  readonly sender: UserId
  /** The owner of the address. */
  readonly target: UserId
  /** `{mxid, token, signatures}`. */
  readonly signed: JsonObject
}

/** Turns invitations of addresses into invitations of users. */
export interface ThirdPartyInvites {
  /**
   * Invites the owner of an address for which the room has an `m.room.third_party_invite`, in the name of its sender. Does nothing if the
   * owner was invited already, is in the room, or has left since.
   *
   * @throws ProtocolError 403 `M_FORBIDDEN` when the claim is invalid, 404 `M_NOT_FOUND` when the room has no such invitation, 502
   * `M_UNKNOWN` when a server that must be asked is not available now
   */
  claim(claim: InviteClaim): Promise<void>
  /**
   * Processes the body of `3pid/onbind`: an identity server says which user owns an address now, and which invitations waited for it.
   * Invalid claims are dropped. If a claim fails for now, the call fails after all are tried, so that the server sends it again.
   *
   * @throws ProtocolError `M_BAD_JSON`, `M_INVALID_PARAM`, `M_NOT_FOUND`, 503 `M_UNKNOWN`
   */
  bound(body: JsonObject): Promise<void>
}

export interface ThirdPartyInviteParts {
  readonly appender: Appender
  readonly registry: RoomRegistry
  readonly users: Users
  readonly serverName: ServerName
  readonly identityServers: Pick<AskedIdentityServers, 'isKeyValid'>
  readonly peers: Pick<Peers, 'exchangeInvite'>
  readonly inviteRemotely: InviteRemotely
  readonly log: Logger
  profileOf(userId: UserId): Promise<PublicProfile>
  /** Whether a local user of that id exists and may be invited. */
  isKnownUser(userId: UserId): Promise<boolean>
}

export const noInvitation = (): ProtocolError =>
  new ProtocolError('M_NOT_FOUND', 'This room has no invitation with that token.')

export function createThirdPartyInvites(parts: ThirdPartyInviteParts): ThirdPartyInvites {
  const { appender, registry, users, serverName, identityServers, log } = parts
  const roomQueue = createKeyedQueue<string>()

  /** A revoked key proves nothing any more, whatever it signed before. */
  async function requireStandingKey(signed: JsonObject, invite: RoomEvent): Promise<void> {
    for (const { publicKey, validityUrl } of vouchingKeys(signed, invite.authPdu.content)) {
      if (validityUrl === undefined || (await isStanding(validityUrl, publicKey))) return
    }
    throw new ProtocolError('M_FORBIDDEN', 'No valid key of the identity server has signed for this invitation.')
  }

  async function isStanding(validityUrl: string, publicKey: string): Promise<boolean> {
    try {
      return await identityServers.isKeyValid(validityUrl, publicKey)
    } catch (error) {
      const text = `Whether the identity server stands by its key cannot be known just now: ${(error as Error).message}.`
      throw new ProtocolError('M_UNKNOWN', text, { status: 502 })
    }
  }

  async function invitation(room: Room | undefined, token: JsonValue | undefined): Promise<RoomEvent> {
    const invite =
      room && typeof token === 'string'
        ? await room.stateEvent('m.room.third_party_invite', token, room.pending.state)
        : undefined
    if (invite === undefined) throw noInvitation()
    return invite
  }

  async function claimHere({ roomId, sender, target, signed }: InviteClaim): Promise<void> {
    const invite = await invitation(await registry.get(roomId), signed.token)
    if (invite.pdu.sender !== sender) throw new ProtocolError('M_FORBIDDEN', `${sender} did not make this invitation.`)
    await requireStandingKey(signed, invite)
    const [profile, nids] = await Promise.all([parts.profileOf(target), users.intern([sender])])
    const { display_name: shown } = invite.authPdu.content
    const content = {
      membership: 'invite',
      ...profile,
      third_party_invite: { ...(typeof shown === 'string' && { display_name: shown }), signed },
    }
    if (serverOf(target) !== serverName) return claimElsewhere(roomId, invite, sender, target, content)
    await appender.append(roomId, async (room) => {
      if (await isAnswered(room, invite, target)) return []
      return [{ type: 'm.room.member', stateKey: target, content, sender, senderNid: nids.get(sender)! }]
    })
  }

  /** Sends the invitation to the owner's server, which signs it. */
  async function claimElsewhere(
    roomId: RoomId,
    invite: RoomEvent,
    sender: UserId,
    target: UserId,
    content: JsonObject,
  ): Promise<void> {
    const room = (await registry.get(roomId))!
    if (!(await isAnswered(room, invite, target)))
      await parts.inviteRemotely({ userId: sender }, roomId, target, content)
  }

  async function claim(wanted: InviteClaim): Promise<void> {
    const { roomId, sender, target, signed } = wanted
    // One after the other: a claim sees the result of the one before.
    if (serverOf(sender) === serverName) return roomQueue.run(`${roomId} ${target}`, () => claimHere(wanted))
    const event = { type: 'm.room.member', room_id: roomId, sender, state_key: target }
    const content = { membership: 'invite', third_party_invite: { display_name: '', signed } }
    await parts.peers.exchangeInvite(serverOf(sender), roomId, { ...event, content })
  }

  /** Returns the error of a failure that may pass. */
  async function attempt(wanted: InviteClaim): Promise<Error | undefined> {
    try {
      await claim(wanted)
    } catch (error) {
      const { roomId, sender } = wanted
      const isFinal = error instanceof ProtocolError && error.errcode === 'M_FORBIDDEN'
      log.info({ roomId, sender, reason: (error as Error).message, isFinal }, 'an invitation by address was not taken')
      return isFinal ? undefined : (error as Error)
    }
    return undefined
  }

  return {
    claim,
    async bound(body) {
      const claims = claimsIn(body)
      const target = body.mxid as UserId
      if (serverOf(target) !== serverName) {
        throw new ProtocolError('M_INVALID_PARAM', `${target} is not a user of ${serverName}.`)
      }
      if (!(await parts.isKnownUser(target))) {
        throw new ProtocolError('M_NOT_FOUND', `There is no user ${target} on this server.`)
      }
      let failed = 0
      for (const wanted of claims) if ((await attempt(wanted)) !== undefined) failed++
      if (failed === 0) return
      const message = `${failed} of ${claims.length} invitations cannot be made just now. Send the request again later.`
      throw new ProtocolError('M_UNKNOWN', message, { status: 503 })
    },
  }
}

/**
 * Whether the invitation is used up: its owner is in the room, invited or banned, or joined and left after it was made. Anybody can repeat
 * the identity server's statement, which is no secret, so a declined invitation must not be made again.
 */
async function isAnswered(room: Room, invite: RoomEvent, target: UserId): Promise<boolean> {
  const member = await room.stateEvent('m.room.member', target, room.pending.state)
  const membership = membershipOf(member)
  if (member === undefined || membership === 'knock') return false
  return membership !== 'leave' || member.nid > invite.nid
}

function claimsIn({ mxid, medium, address, invites }: JsonObject): InviteClaim[] {
  if (!isUserId(mxid)) throw new ProtocolError('M_INVALID_PARAM', "Key 'mxid' must be a user id (@localpart:server).")
  if (!Array.isArray(invites)) throw new ProtocolError('M_BAD_JSON', "Key 'invites' must be a list.")
  if (invites.length > MAX_INVITES_OF_A_BIND) {
    throw new ProtocolError('M_INVALID_PARAM', `At most ${MAX_INVITES_OF_A_BIND} invitations are taken at once.`)
  }
  if (typeof medium !== 'string' || typeof address !== 'string') {
    throw new ProtocolError('M_BAD_JSON', "Keys 'medium' and 'address' must say whose address was bound.")
  }
  return invites.map((invite) => {
    const { room_id: roomId, sender, signed, ...bound } = isObject(invite) ? invite : {}
    const isBound = typeof bound.medium === 'string' && typeof bound.address === 'string' && bound.mxid === mxid
    const isSigned =
      isObject(signed) && signed.mxid === mxid && typeof signed.token === 'string' && isObject(signed.signatures)
    if (!isBound || !isSigned || !isRoomId(roomId) || !isUserId(sender)) {
      const keys = "'medium', 'address', 'mxid', 'room_id', 'sender' or 'signed' with 'mxid', 'token' and 'signatures'"
      throw new ProtocolError('M_BAD_JSON', `An entry of 'invites' lacks ${keys}.`)
    }
    return { roomId, sender, target: mxid, signed }
  })
}
