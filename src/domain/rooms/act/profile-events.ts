import { ProtocolError } from '../../../core/errors.ts'
import { membershipOf } from '../../../core/event/content.ts'
import type { RoomId, UserId } from '../../../core/ids.ts'
import type { JsonObject, JsonValue } from '../../../core/json.ts'
import type { UserRooms } from '../../sync/user-rooms.ts'
import type { Users } from '../../users.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { Appender } from '../write/append.ts'
import type { Draft } from '../write/draft.ts'
import type { Rooms } from './rooms.ts'

/** The profile that a member event shows. */
export interface PublicProfile {
  readonly displayname?: string
  readonly avatar_url?: string
}

/** Copies changed names and avatars into the rooms that users are in. */
export interface ProfileEvents {
  /** A room that refuses the new member event keeps the old one, for example when its join rule is unknown. */
  profileChanged(userId: UserId): Promise<void>
  /** The same rooms, where who comes in during a change has the new name too: the change does not find the room among the user's yet. */
  following(rooms: Rooms): Rooms
}

interface Member {
  readonly userId: UserId
  readonly userNid: number
}

const ROOMS_AT_ONCE = 16

export function createProfileEvents(parts: {
  readonly appender: Appender
  readonly registry: RoomRegistry
  readonly users: Users
  readonly userRooms: UserRooms
  profileOf(userId: UserId): Promise<PublicProfile>
}): ProfileEvents {
  const { appender, registry, users, userRooms } = parts
  /** Who is coming into a room. Of each, whether the name has changed since. */
  const arriving = new Map<UserId, Set<{ isOutdated: boolean }>>()

  /** The profile is read again for each room, because another change may be going through the rooms at the same time. */
  async function carryInto(roomId: RoomId, user: Member): Promise<void> {
    const plan = async (room: Room) => memberDraft(room, user, await parts.profileOf(user.userId))
    await appender.append(roomId, plan).catch(passOverRefusal)
  }

  async function withNewName<T>(user: Member, come: () => Promise<T>, roomOf: (outcome: T) => RoomId): Promise<T> {
    const arrival = { isOutdated: false }
    const all = arriving.get(user.userId) ?? new Set()
    arriving.set(user.userId, all.add(arrival))
    let outcome: T
    try {
      outcome = await come()
    } finally {
      all.delete(arrival)
      if (all.size === 0) arriving.delete(user.userId)
    }
    if (arrival.isOutdated) await carryInto(roomOf(outcome), user)
    return outcome
  }

  return {
    async profileChanged(userId) {
      for (const arrival of arriving.get(userId) ?? []) arrival.isOutdated = true
      const userNid = await users.find(userId)
      if (userNid === undefined) return
      const rooms = await userRooms.of(userNid)
      const joined = [...rooms].flatMap(([nid, { membership }]) => (membership === 'join' ? [nid] : []))
      for (let start = 0; start < joined.length; start += ROOMS_AT_ONCE) {
        const some = joined.slice(start, start + ROOMS_AT_ONCE)
        await Promise.all(some.map(async (nid) => carryInto((await registry.getByNid(nid)).id, { userId, userNid })))
      }
    },
    following: (rooms) => ({
      ...rooms,
      join(by, roomId, details) {
        return withNewName(
          by,
          () => rooms.join(by, roomId, details),
          () => roomId,
        )
      },
      create(by, request, offence) {
        return withNewName(
          by,
          () => rooms.create(by, request, offence),
          (created) => created.roomId,
        )
      },
    }),
  }
}

function passOverRefusal(error: unknown): void {
  if (!(error instanceof ProtocolError)) throw error
}

/** The member event with the new profile. Nothing when the user has left meanwhile, or the profile is the same. */
async function memberDraft(room: Room, { userId, userNid }: Member, profile: PublicProfile): Promise<Draft[]> {
  const member = await room.stateEvent('m.room.member', userId, room.pending.state)
  if (!member || membershipOf(member) !== 'join') return []
  const { displayname: _, avatar_url: __, join_authorised_via_users_server: ___, ...others } = member.content
  // A literal that spreads both gives each content a hidden class of its own, which costs more memory than the content.
  const content: JsonObject = Object.assign(others, profile)
  const isSame = content.displayname === member.content.displayname && content.avatar_url === member.content.avatar_url
  if (isSame) return []
  return [{ type: 'm.room.member', stateKey: userId, content, sender: userId, senderNid: userNid }]
}

/** The profile fields that member events repeat. */
export function publicProfile(profile: Readonly<Record<string, JsonValue>>): PublicProfile {
  const { displayname, avatar_url } = profile
  return {
    ...(typeof displayname === 'string' ? { displayname } : {}),
    ...(typeof avatar_url === 'string' ? { avatar_url } : {}),
  }
}
