import type { UserId } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { RoomVersion } from '../../../core/room-version.ts'
import type { RoomRequest } from './rooms.ts'

/** What a preset of `createRoom` sets (client-server API, "Creation" of rooms). */
interface Preset {
  readonly joinRule: 'public' | 'invite'
  readonly historyVisibility: 'shared'
  readonly guestAccess: boolean
  /** Whether invited users get the same powers as the creator. */
  readonly trustsInvited: boolean
}

const PRESETS: Readonly<Record<NonNullable<RoomRequest['preset']>, Preset>> = {
  private_chat: { joinRule: 'invite', historyVisibility: 'shared', guestAccess: true, trustsInvited: false },
  trusted_private_chat: { joinRule: 'invite', historyVisibility: 'shared', guestAccess: true, trustsInvited: true },
  public_chat: { joinRule: 'public', historyVisibility: 'shared', guestAccess: false, trustsInvited: false },
}

export function presetOf(request: RoomRequest): Preset {
  return PRESETS[request.preset ?? (request.visibility === 'public' ? 'public_chat' : 'private_chat')]
}

const CREATOR_LEVEL = 100
/** Where creators stand above every level, this is above everybody else, so that only creators can replace the room. */
const TOMBSTONE_LEVEL_UNDER_CREATORS = 150

/** The first power levels of a room. The client's own values override them key by key. */
export function powerLevels(
  version: RoomVersion,
  creator: UserId,
  trusted: readonly UserId[],
  override: JsonObject = {},
): JsonObject {
  const users = version.creatorsAreInfinite ? [] : [creator, ...trusted]
  return {
    users: Object.fromEntries(users.map((userId) => [userId, CREATOR_LEVEL])),
    users_default: 0,
    events: {
      'm.room.name': 50,
      'm.room.power_levels': 100,
      'm.room.history_visibility': 100,
      'm.room.canonical_alias': 50,
      'm.room.avatar': 50,
      'm.room.tombstone': version.creatorsAreInfinite ? TOMBSTONE_LEVEL_UNDER_CREATORS : 100,
      'm.room.server_acl': 100,
      'm.room.encryption': 100,
    },
    events_default: 0,
    state_default: 50,
    ban: 50,
    kick: 50,
    redact: 50,
    invite: version.powerLevelDefaults.invite,
    ...override,
  }
}
