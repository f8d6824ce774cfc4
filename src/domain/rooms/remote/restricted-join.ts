import { ProtocolError } from '../../../core/errors.ts'
import { allowedRoomsOf, joinRuleOf, membershipOf } from '../../../core/event/content.ts'
import type { UserId } from '../../../core/ids.ts'
import { compareIntegers } from '../../../core/large-integers.ts'
import { powerLevelsOf } from '../room/power.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'

/**
 * The local member who authorises a join to a restricted room; undefined where nobody can or need. It is the one with the most power, so
 * that it stays the same as long as possible.
 *
 * @throws ProtocolError `M_FORBIDDEN` when the user is in none of the rooms that the rule names, `M_UNABLE_TO_AUTHORISE_JOIN` when we
 * cannot know that, `M_UNABLE_TO_GRANT_JOIN` when no local member may invite (server-server API, `GET make_join`)
 */
export async function authoriserFor(
  registry: Pick<RoomRegistry, 'get'>,
  room: Room,
  userId: UserId,
): Promise<UserId | undefined> {
  const joinRules = await room.stateEvent('m.room.join_rules', '')
  if (!isRestricted(room, joinRules)) return undefined
  const membership = membershipOf(await room.stateEvent('m.room.member', userId))
  // A member or invited user needs nobody's authorisation; the rules refuse a banned one later.
  if (membership === 'join' || membership === 'invite' || membership === 'ban') return undefined
  await mustBeInOneOf(registry, joinRules, userId)
  const levels = await powerLevelsOf(room)
  const inviters = [...room.localMembers.values()]
    .map((member) => ({ userId: member.userId, level: levels.levelOf(member.userId) }))
    .filter(({ level }) => level >= levels.invite)
    .sort((one, other) => compareIntegers(other.level, one.level) || compare(one.userId, other.userId))
  if (inviters[0]) return inviters[0].userId
  throw new ProtocolError('M_UNABLE_TO_GRANT_JOIN', 'No member on this server may let others into the room.')
}

function isRestricted({ version }: Room, joinRules: RoomEvent | undefined): boolean {
  const rule = joinRuleOf(joinRules)
  return (
    version.restrictedJoins && version.joinRules.has(rule) && (rule === 'restricted' || rule === 'knock_restricted')
  )
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}

/** At most this many of the rooms in a join rule are checked. */
const MAX_ALLOWED_ROOMS = 50

async function mustBeInOneOf(
  registry: Pick<RoomRegistry, 'get'>,
  joinRules: RoomEvent | undefined,
  userId: UserId,
): Promise<void> {
  let isAllKnown = true
  for (const roomId of allowedRoomsOf(joinRules).slice(0, MAX_ALLOWED_ROOMS)) {
    const allowed = await registry.get(roomId)
    // When our last member has left a room, what we knew of it no longer says who is in it.
    if (!allowed || allowed.localMembers.size === 0) isAllKnown = false
    else if (membershipOf(await allowed.stateEvent('m.room.member', userId)) === 'join') return
  }
  if (isAllKnown) throw new ProtocolError('M_FORBIDDEN', 'You are in none of the rooms that let users into this one.')
  throw new ProtocolError(
    'M_UNABLE_TO_AUTHORISE_JOIN',
    'This server does not know the rooms that let users into this one.',
  )
}
