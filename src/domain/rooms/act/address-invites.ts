import type { Logger } from 'pino'
import { ProtocolError } from '../../../core/errors.ts'
import { isUserId, type RoomAlias, type RoomId, type UserId } from '../../../core/ids.ts'
import { isObject, type JsonObject, type JsonOffence, type JsonValue } from '../../../core/json.ts'
import type { Requester } from '../../accounts/requester.ts'
import { MAX_ADDRESSES_INVITED } from '../../limits.ts'
import { mustBeMember } from '../room/not-in-room.ts'
import { powerLevelsOf } from '../room/power.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { Appender } from '../write/append.ts'
import type { AskedIdentityServers } from './identity-servers.ts'
import type { PublicProfile } from './profile-events.ts'
import type { RoomRequest, Rooms } from './rooms.ts'

/** A person whom a client invites by an address (client-server API, `Invite3pid`). */
export interface InvitedAddress {
  /** The identity server that looks up the owner of the address. */
  readonly id_server: string
  readonly id_access_token: string
  readonly medium: string
  readonly address: string
}

/** Inviting people by their addresses. */
export interface AddressInvites {
  /**
   * Invites the owner of the address. If the owner is unknown, leaves an `m.room.third_party_invite` in the room for a later owner.
   *
   * @throws ProtocolError `M_FORBIDDEN` when the user may not invite, and what the identity server answers
   */
  invite(by: Requester, roomId: RoomId, invited: InvitedAddress, details: { reason?: string }): Promise<void>
  /** Creates a room and invites people by user id and by address. Errors in an address are raised before the room is created. */
  createRoom(
    by: Requester,
    request: RoomRequest & { readonly invite_3pid?: readonly InvitedAddress[] },
    offence: JsonOffence | undefined,
  ): Promise<{ roomId: RoomId; alias: RoomAlias | undefined }>
}

export interface AddressInviteParts {
  readonly appender: Appender
  readonly registry: RoomRegistry
  readonly identityServers: Pick<AskedIdentityServers, 'lookup' | 'storeInvite'>
  readonly rooms: Pick<Rooms, 'invite' | 'create'>
  readonly log: Logger
  profileOf(userId: UserId): Promise<PublicProfile>
}

/** State that an identity server writes into its mail about a room: the key of the request, the event type, the key of its content. */
const SHOWN = [
  ['room_alias', 'm.room.canonical_alias', 'alias'],
  ['room_avatar_url', 'm.room.avatar', 'url'],
  ['room_join_rules', 'm.room.join_rules', 'join_rule'],
  ['room_name', 'm.room.name', 'name'],
  ['room_type', 'm.room.create', 'type'],
] as const

export function createAddressInvites(parts: AddressInviteParts): AddressInvites {
  const { appender, registry, identityServers, rooms, log } = parts

  /** Checked before the identity server is called, because that sends a mail. */
  async function requireMayInvite(by: Requester, roomId: RoomId): Promise<Room> {
    const room = mustBeMember(await registry.get(roomId), by)
    const levels = await powerLevelsOf(room)
    if (levels.levelOf(by.userId) < levels.invite) {
      throw new ProtocolError('M_FORBIDDEN', `To invite to this room takes power level ${levels.invite}.`)
    }
    return room
  }

  async function invitationOf(by: Requester, room: Room, { medium, address }: InvitedAddress): Promise<JsonObject> {
    const profile = await parts.profileOf(by.userId)
    const events = await Promise.all(SHOWN.map(([, type]) => room.stateEvent(type, '')))
    const shown = SHOWN.map(([key, , from], index) => [key, events[index]?.authPdu.content[from]])
    const invitation: Record<string, JsonValue | undefined> = {
      ...{ medium, address, room_id: room.id, sender: by.userId },
      ...{ sender_display_name: profile.displayname, sender_avatar_url: profile.avatar_url },
      ...Object.fromEntries(shown),
    }
    return Object.fromEntries(
      Object.entries(invitation).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    )
  }

  async function inviteUnknown(by: Requester, room: Room, invited: InvitedAddress): Promise<UserId | undefined> {
    const { id_server: server, id_access_token: token } = invited
    let stored: JsonObject
    try {
      stored = await identityServers.storeInvite(server, token, await invitationOf(by, room, invited))
    } catch (error) {
      // The address was bound after the look-up.
      const owner = error instanceof ProtocolError && error.errcode === 'M_THREEPID_IN_USE' && error.extra.mxid
      if (isUserId(owner)) return owner
      throw error
    }
    const { stateKey, content } = eventOf(stored, server)
    const draft = { type: 'm.room.third_party_invite', stateKey, content, sender: by.userId, senderNid: by.userNid }
    await appender.append(room.id, () => [draft])
    return undefined
  }

  const ownerOf = (invited: InvitedAddress) =>
    identityServers.lookup(invited.id_server, invited.id_access_token, invited)

  async function invite(by: Requester, roomId: RoomId, invited: InvitedAddress, details: { reason?: string }) {
    const room = await requireMayInvite(by, roomId)
    const owner = (await ownerOf(invited)) ?? (await inviteUnknown(by, room, invited))
    if (owner !== undefined) await rooms.invite(by, roomId, owner, details)
  }

  return {
    invite,
    async createRoom(by, { invite_3pid: addresses = [], ...request }, offence) {
      if (addresses.length === 0) return rooms.create(by, request, offence)
      if (addresses.length > MAX_ADDRESSES_INVITED) {
        const message = `At most ${MAX_ADDRESSES_INVITED} addresses can be invited while a room is made.`
        throw new ProtocolError('M_INVALID_PARAM', message)
      }
      const owners = await Promise.all(addresses.map(ownerOf))
      const known = owners.flatMap((owner) => (owner === undefined || owner === by.userId ? [] : [owner]))
      const made = await rooms.create(by, { ...request, invite: [...(request.invite ?? []), ...known] }, offence)
      for (const [index, address] of addresses.entries()) {
        if (owners[index] !== undefined) continue
        // The room exists and its creator must get the answer. They can invite again whoever it does not show as invited.
        await invite(by, made.roomId, address, {}).catch((err) =>
          log.warn({ err, roomId: made.roomId }, 'an address was not invited to a new room'),
        )
      }
      return made
    },
  }
}

/** The state event for an invitation that an identity server stores, read from its answer to `store-invite`. */
function eventOf(stored: JsonObject, server: string): { stateKey: string; content: JsonObject } {
  const { token, display_name: shown, public_keys: listed } = stored
  const keys = (Array.isArray(listed) ? listed : []).map((key, index) => keyOf(key, server, index === 0))
  const named = keys.filter((key) => key !== undefined)
  const [first] = named
  if (typeof token !== 'string' || token === '' || typeof shown !== 'string' || first === undefined) {
    throw new ProtocolError('M_UNKNOWN', 'The identity server kept the invitation, and its answer makes no sense.', {
      status: 502,
    })
  }
  return { stateKey: token, content: { display_name: shown, ...first, public_keys: named } }
}

/** Older interfaces list bare keys: first the long-term key, then that of the invitation. */
function keyOf(key: JsonValue, server: string, isFirst: boolean): JsonObject | undefined {
  const otherwise = `https://${server}/_matrix/identity/v2/pubkey/${isFirst ? '' : 'ephemeral/'}isvalid`
  if (typeof key === 'string') return { public_key: key, key_validity_url: otherwise }
  if (!isObject(key) || typeof key.public_key !== 'string') return undefined
  const { public_key, key_validity_url: url } = key
  return { public_key, key_validity_url: typeof url === 'string' ? url : otherwise }
}
