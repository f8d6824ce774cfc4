import { createContentOf, redactsOf } from '../event/content.ts'
import { ALLOWED, type Pdu, refuse, type Verdict } from '../event/format.ts'
import { isUserId, serverOf } from '../ids.ts'
import { type RoomVersion, roomVersion } from '../room-version.ts'
import { roomIdOfCreate } from '../signing/event-hash.ts'
import { type AuthContext, idOfCreate, membershipIn, type StateLookup } from './context.ts'
import { authoriseMember } from './member.ts'
import { authorisePowerLevels } from './power-level-change.ts'
import { lacksPower, readPowerLevels } from './power-levels.ts'

// Clauses are numbered as in room version 1, where the list is longest. Without rule 4 (aliases, from version 6 on)
// what follows moves up by one; room version 12 puts a new rule 2 before the rest.

/**
 * Whether an event may enter a room with this state: the authorisation rules of its version (room versions, "Authorisation rules"),
 * but for the rule about the event's own `auth_events`, which is `checkAuthEvents`.
 *
 * @param event one that `checkFormat` has allowed; its content may be anything
 * @param state the room's state before the event, at least what `authEventKeys` names
 */
export function authorise(version: RoomVersion, event: Pdu, state: StateLookup): Verdict {
  if (event.type === 'm.room.create') return authoriseCreate(version, event)
  const create = state('m.room.create', '')
  if (create === undefined) return refuse('The room has no create event.')
  const levels = readPowerLevels(version, state('m.room.power_levels', '')?.content, create)
  return authoriseInRoom({ version, event, state, create, levels })
}

/** 1. `m.room.create` */
function authoriseCreate(version: RoomVersion, event: Pdu): Verdict {
  const { content } = event
  // 1.1. It comes first.
  if (event.prev_events.length > 0) return refuse('A create event can only be the first event of a room.')
  // 1.2. The room id is of the sender's server; in room version 12 there is none yet.
  const idVerdict = authoriseNewRoomId(version, event)
  if (!idVerdict.allowed) return idVerdict
  // 1.3. A room version that is named is one we know.
  const named = content.room_version
  const isKnown = named === undefined || (typeof named === 'string' && roomVersion(named) !== undefined)
  if (!isKnown) return refuse('This server does not know the room version that the create event names.')
  // 1.4. Up to room version 10 it names the creator,
  if (version.createNamesCreator && content.creator === undefined) return refuse('The create event names no creator.')
  // and from 12 on it may name more of them.
  const added = content.additional_creators
  if (version.creatorsAreInfinite && added !== undefined && !(Array.isArray(added) && added.every(isUserId))) {
    return refuse('The additional_creators of a room must be a list of user ids.')
  }
  return ALLOWED
}

function authoriseNewRoomId(version: RoomVersion, event: Pdu): Verdict {
  const roomId: string | undefined = event.room_id
  if (version.roomIdIsCreateHash) {
    return roomId === undefined ? ALLOWED : refuse('A create event has no room_id in this room version.')
  }
  const isOwn = roomId !== undefined && serverOf(roomId) === serverOf(event.sender)
  return isOwn ? ALLOWED : refuse("A room's id must name the server of the user who creates it.")
}

function authoriseInRoom(context: AuthContext): Verdict {
  const { version, event, create } = context
  // 2 of room version 12. The room id is the id of the create event.
  if (version.roomIdIsCreateHash && event.room_id !== roomIdOfCreate(idOfCreate(version, create))) {
    return refuse('The room_id is not that of the room.')
  }
  // 3. A room may be closed to other servers than its creator's.
  if (!createContentOf(create).federates && serverOf(event.sender) !== serverOf(create.sender)) {
    return refuse('This room is closed to users of other servers.')
  }
  // 4. Up to room version 5, `m.room.aliases` belongs to the server in its state key, member or not.
  if (version.aliasesHaveOwnRule && event.type === 'm.room.aliases') {
    const isOwn = event.state_key === serverOf(event.sender)
    return isOwn ? ALLOWED : refuse('A server can list only aliases of its own.')
  }
  // 5. Membership
  return event.type === 'm.room.member' ? authoriseMember(context) : authoriseByMember(context)
}

/** 6 to 12: what takes a member of the room with power enough. */
function authoriseByMember(context: AuthContext): Verdict {
  const { version, event, levels } = context
  const { type, sender, state_key: stateKey } = event
  // 6. The sender is joined.
  if (membershipIn(context, sender) !== 'join') return refuse(`${sender} is not in this room.`)
  const level = levels.levelOf(sender)
  // 7. A third-party invite takes what inviting takes, and nothing else.
  if (type === 'm.room.third_party_invite') {
    return level >= levels.invite ? ALLOWED : lacksPower(sender, level, 'invite', levels.invite)
  }
  // 8. The type's own level
  const required = levels.toSend(type, stateKey !== undefined)
  if (level < required) return lacksPower(sender, level, `send ${type}`, required)
  // 9. State under a user's id is that user's.
  if (stateKey?.startsWith('@') && stateKey !== sender) {
    return refuse('State under the id of a user can be set only by that user.')
  }
  // 10. Power levels
  if (type === 'm.room.power_levels') return authorisePowerLevels(context)
  // 11. Redaction, in room versions 1 and 2
  if (version.authRulesCoverRedaction && type === 'm.room.redaction') return authoriseRedaction(context, level)
  // 12.
  return ALLOWED
}

function authoriseRedaction({ version, event, levels }: AuthContext, level: number): Verdict {
  // 11.1. With the redact level, anything;
  if (level >= levels.redact) return ALLOWED
  // 11.2. without it, events whose id is of the same server.
  const target: string | undefined = redactsOf(version, event)
  const server = target && serverOf(target)
  const isSameServer = server !== undefined && server === serverOf((event.event_id ?? '') as string)
  return isSameServer ? ALLOWED : lacksPower(event.sender, level, 'redact what others sent', levels.redact)
}
