import { createContentOf, redactsOf } from '../event/content.ts'
import { ALLOWED, type Pdu, type Verdict } from '../event/format.ts'
import { isUserId, serverOf } from '../ids.ts'
import type { Integer } from '../large-integers.ts'
import { type RoomVersion, roomVersion } from '../room-version.ts'
import { roomIdOfCreate } from '../signing/event-hash.ts'
import { rejectBy } from './clauses.ts'
import { type AuthContext, idOfCreate, membershipIn, type StateLookup } from './context.ts'
import { authoriseMember } from './member.ts'
import { authorisePowerLevels } from './power-level-change.ts'
import { lackOfPower, readPowerLevels } from './power-levels.ts'

// Clauses are numbered as in room version 1, which has the longest list. From version 6 on there is no rule 4 (aliases), and
// the later rules move up by one; room version 12 inserts a new rule 2.

/**
 * Checks an event against a room's state by the authorisation rules of its version (room versions, "Authorisation rules"). The rule
 * about the event's own `auth_events` is in `checkAuthEvents`. Signatures are checked earlier, on receipt.
 *
 * @param event must have passed `checkFormat`; its content may be anything
 * @param state the room's state before the event, at least what `authEventKeys` names
 */
export function authorise(version: RoomVersion, event: Pdu, state: StateLookup): Verdict {
  if (event.type === 'm.room.create') return authoriseCreate(version, event)
  const create = state('m.room.create', '')
  if (create === undefined) {
    const clause = version.createIsAuthEvent ? 'auth-events.no-create' : 'room-id'
    return rejectBy(version, clause, 'The room has no create event.')
  }
  const levels = readPowerLevels(version, state('m.room.power_levels', '')?.content, create)
  return authoriseInRoom({ version, event, state, create, levels })
}

/** 1. `m.room.create` */
function authoriseCreate(version: RoomVersion, event: Pdu): Verdict {
  const { content } = event
  // 1.1. It must have no previous events.
  if (event.prev_events.length > 0) {
    return rejectBy(version, 'create.prev-events', 'A create event can only be the first event of a room.')
  }
  // 1.2. The room id must be of the sender's server; in room version 12 the event must have none.
  const idVerdict = authoriseNewRoomId(version, event)
  if (!idVerdict.allowed) return idVerdict
  // 1.3. A named room version must be known.
  const named = content.room_version
  const isKnown = named === undefined || (typeof named === 'string' && roomVersion(named) !== undefined)
  if (!isKnown) {
    return rejectBy(version, 'create.room-version', 'This server does not know the room version of the create event.')
  }
  // 1.4. Up to room version 10 it must name the creator.
  if (version.createNamesCreator && content.creator === undefined) {
    return rejectBy(version, 'create.creator', 'The create event names no creator.')
  }
  // From version 12 on it may name additional creators, which must be user ids.
  const added = content.additional_creators
  if (version.creatorsAreInfinite && added !== undefined && !(Array.isArray(added) && added.every(isUserId))) {
    return rejectBy(version, 'create.additional-creators', 'The additional_creators must be a list of user ids.')
  }
  return ALLOWED
}

function authoriseNewRoomId(version: RoomVersion, event: Pdu): Verdict {
  const roomId: string | undefined = event.room_id
  if (version.roomIdIsCreateHash) {
    if (roomId === undefined) return ALLOWED
    return rejectBy(version, 'create.room-id', 'A create event has no room_id in this room version.')
  }
  const isOwn = roomId !== undefined && serverOf(roomId) === serverOf(event.sender)
  if (isOwn) return ALLOWED
  return rejectBy(version, 'create.room-id', "A room's id must name the server of the user who creates it.")
}

function authoriseInRoom(context: AuthContext): Verdict {
  const { version, event, create } = context
  // 2 of room version 12. The room id must be the id of the create event.
  if (version.roomIdIsCreateHash && event.room_id !== roomIdOfCreate(idOfCreate(version, create))) {
    return rejectBy(version, 'room-id', 'The room_id is not that of the room.')
  }
  // 3. With `m.federate` false, only senders of the creator's server are allowed.
  if (!createContentOf(create).federates && serverOf(event.sender) !== serverOf(create.sender)) {
    return rejectBy(version, 'federate', 'This room is closed to users of other servers.')
  }
  // 4. Up to room version 5, any sender of the server in the state key may send `m.room.aliases`.
  if (version.aliasesHaveOwnRule && event.type === 'm.room.aliases') return authoriseAliases(version, event)
  // 5. Membership
  return event.type === 'm.room.member' ? authoriseMember(context) : authoriseByMember(context)
}

function authoriseAliases(version: RoomVersion, event: Pdu): Verdict {
  // 4.1. It must have a state key.
  if (event.state_key === undefined) {
    return rejectBy(version, 'aliases.no-state-key', 'A list of aliases needs a server as its state key.')
  }
  // 4.2. The state key must be the sender's server.
  if (event.state_key === serverOf(event.sender)) return ALLOWED
  return rejectBy(version, 'aliases.other-server', 'A server can list only aliases of its own.')
}

/** 6 to 12: events that need a joined sender and a power level. */
function authoriseByMember(context: AuthContext): Verdict {
  const { version, event, levels } = context
  const { type, sender, state_key: stateKey } = event
  // 6. The sender must be joined.
  if (membershipIn(context, sender) !== 'join') {
    return rejectBy(version, 'sender-outside', `${sender} is not in this room.`)
  }
  const level = levels.levelOf(sender)
  // 7. A third-party invite needs the level for inviting, and nothing else.
  if (type === 'm.room.third_party_invite') {
    if (level >= levels.invite) return ALLOWED
    return rejectBy(version, 'third-party-invite.level', lackOfPower(sender, level, 'invite', levels.invite))
  }
  // 8. The sender needs the level of the event's type.
  const required = levels.toSend(type, stateKey !== undefined)
  if (level < required) return rejectBy(version, 'level', lackOfPower(sender, level, `send ${type}`, required))
  // 9. Only that user may send state under a user's id.
  if (stateKey?.startsWith('@') && stateKey !== sender) {
    return rejectBy(version, 'state-key', 'State under the id of a user can be set only by that user.')
  }
  // 10. Power levels
  if (type === 'm.room.power_levels') return authorisePowerLevels(context)
  // 11. Redaction, in room versions 1 and 2
  if (version.authRulesCoverRedaction && type === 'm.room.redaction') return authoriseRedaction(context, level)
  // 12.
  return ALLOWED
}

function authoriseRedaction({ version, event, levels }: AuthContext, level: Integer): Verdict {
  // 11.1. A sender with the redact level may redact any event.
  if (level >= levels.redact) return ALLOWED
  // 11.2. Others may redact events whose id is of their own server.
  const target: string | undefined = redactsOf(version, event)
  const server = target && serverOf(target)
  const isSameServer = server !== undefined && server === serverOf((event.event_id ?? '') as string)
  if (isSameServer) return ALLOWED
  // 11.3.
  const reason = lackOfPower(event.sender, level, 'redact what others sent', levels.redact)
  return rejectBy(version, 'redaction.otherwise', reason)
}
