import { creatorsOf, joinAuthoriserOf, joinRuleOf } from '../event/content.ts'
import { ALLOWED, type Pdu, referencedId, refuse, type Verdict } from '../event/format.ts'
import { isUserId, serverOf } from '../ids.ts'
import { type AuthContext, idOfCreate, membershipIn } from './context.ts'
import { lacksPower } from './power-levels.ts'
import { authoriseThirdPartyInvite } from './third-party-invite.ts'

// Clauses of rule 5 (rule 4 in room versions 6 to 11), numbered as in room version 12.

const BY_MEMBERSHIP: ReadonlyMap<unknown, (context: AuthContext, target: string) => Verdict> = new Map([
  ['join', authoriseJoin],
  ['invite', authoriseInvite],
  ['leave', authoriseLeave],
  ['ban', authoriseBan],
  ['knock', authoriseKnock],
])

/** 5. `m.room.member` */
export function authoriseMember(context: AuthContext): Verdict {
  const { content, state_key: target } = context.event
  // 5.1. It says whose membership it is, and which.
  if (target === undefined || content.membership === undefined) {
    return refuse('A membership event needs a user as its state key and a membership.')
  }
  // 5.2. A join let in by a member's server carries its signature.
  if (context.version.restrictedJoins && content.join_authorised_via_users_server !== undefined) {
    if (!isSignedForAuthoriser(context.event)) {
      return refuse('The server of join_authorised_via_users_server has not signed the event.')
    }
  }
  // 5.3 to 5.7, by membership. 5.8. Any other is unknown.
  const rule = BY_MEMBERSHIP.get(content.membership)
  return rule ? rule(context, target) : unknownMembership()
}

function unknownMembership(): Verdict {
  return refuse('This room version knows no such membership.')
}

/** Whether the signature is there. That it is valid is found on receipt, together with the sender's. */
function isSignedForAuthoriser(event: Pdu): boolean {
  const authoriser = joinAuthoriserOf(event.content)
  return isUserId(authoriser) && Object.hasOwn(event.signatures, serverOf(authoriser))
}

/** 5.3. */
function authoriseJoin(context: AuthContext, target: string): Verdict {
  const { event } = context
  // 5.3.1. The creator joins right after creating.
  if (isFirstJoin(context, target)) return ALLOWED
  // 5.3.2. One joins for oneself,
  if (event.sender !== target) return refuse('Nobody can join a room for someone else.')
  // 5.3.3. unless banned.
  const current = membershipIn(context, target)
  if (current === 'ban') return refuse(`${target} is banned from this room.`)
  const rule = joinRuleOf(context.state('m.room.join_rules', ''))
  // 5.3.7. A rule that is unknown to the room's version lets nobody in.
  if (!context.version.joinRules.has(rule))
    return refuse("Nobody can join: the room's join rule is not one of its version.")
  // 5.3.6. A public room is open;
  if (rule === 'public') return ALLOWED
  // 5.3.4, 5.3.5.1. every other is to those invited, and to those inside.
  if (current === 'invite' || current === 'join') return ALLOWED
  // 5.3.5.2. A restricted one also to those for whom a member answers.
  if (rule === 'restricted' || rule === 'knock_restricted') return authoriseRestrictedJoin(context)
  return refuse('You are not invited to this room.')
}

/** The only event before is the create event. */
function isFirstJoin(context: AuthContext, target: string): boolean {
  const { version, event, create } = context
  const [previous, ...more] = event.prev_events
  const [creator] = creatorsOf(version, create)
  if (target !== creator || previous === undefined || more.length > 0) return false
  return referencedId(previous) === idOfCreate(version, create)
}

/** 5.3.5.2. Whoever lets a user in is a member who may invite. */
function authoriseRestrictedJoin(context: AuthContext): Verdict {
  const authoriser = joinAuthoriserOf(context.event.content)
  if (authoriser === undefined) return refuse('You are neither invited to this room nor let in by one of its members.')
  if (membershipIn(context, authoriser) !== 'join')
    return refuse(`${authoriser}, who lets you in, is not in this room.`)
  const level = context.levels.levelOf(authoriser)
  return level >= context.levels.invite ? ALLOWED : lacksPower(authoriser, level, 'let users in', context.levels.invite)
}

/** 5.4. */
function authoriseInvite(context: AuthContext, target: string): Verdict {
  const { event, levels } = context
  // 5.4.1. An invite of someone who was known by a third-party identifier has rules of its own.
  if (event.content.third_party_invite !== undefined) return authoriseThirdPartyInvite(context, target)
  // 5.4.2. Members invite
  if (membershipIn(context, event.sender) !== 'join') return refuse(`${event.sender} is not in this room.`)
  // 5.4.3. those who are neither inside nor banned,
  const current = membershipIn(context, target)
  if (current === 'join') return refuse(`${target} is already in this room.`)
  if (current === 'ban') return refuse(`${target} is banned from this room.`)
  // 5.4.4. with power enough.
  const level = levels.levelOf(event.sender)
  return level >= levels.invite ? ALLOWED : lacksPower(event.sender, level, 'invite', levels.invite)
}

/** 5.5. */
function authoriseLeave(context: AuthContext, target: string): Verdict {
  const { version, event, levels } = context
  const { sender } = event
  const current = membershipIn(context, target)
  // 5.5.1. One leaves what one is in, declines an invitation, takes back a knock.
  if (sender === target) {
    const mayLeave = current === 'join' || current === 'invite' || (version.knocking && current === 'knock')
    return mayLeave
      ? ALLOWED
      : refuse(current === 'ban' ? `${target} is banned from this room.` : `${target} is not in this room.`)
  }
  // 5.5.2. Members put others out.
  if (membershipIn(context, sender) !== 'join') return refuse(`${sender} is not in this room.`)
  const level = levels.levelOf(sender)
  // 5.5.3. Lifting a ban also takes the level for banning.
  if (current === 'ban' && level < levels.ban) return lacksPower(sender, level, 'lift a ban', levels.ban)
  // 5.5.4. They need the level for kicking, and to stand above whom they put out.
  if (level < levels.kick) return lacksPower(sender, level, 'remove users', levels.kick)
  return standsAbove(context, target)
}

/** 5.6. */
function authoriseBan(context: AuthContext, target: string): Verdict {
  const { event, levels } = context
  // 5.6.1. Members ban,
  if (membershipIn(context, event.sender) !== 'join') return refuse(`${event.sender} is not in this room.`)
  // 5.6.2. with the level for banning, those who stand below.
  const level = levels.levelOf(event.sender)
  if (level < levels.ban) return lacksPower(event.sender, level, 'ban', levels.ban)
  return standsAbove(context, target)
}

function standsAbove({ event, levels }: AuthContext, target: string): Verdict {
  const isAbove = levels.levelOf(target) < levels.levelOf(event.sender)
  return isAbove ? ALLOWED : refuse(`${target} has as much power in this room as ${event.sender}.`)
}

/** 5.7. From room version 7 on */
function authoriseKnock(context: AuthContext, target: string): Verdict {
  const { version, event } = context
  if (!version.knocking) return unknownMembership()
  // 5.7.1. The room takes knocks.
  const rule = joinRuleOf(context.state('m.room.join_rules', ''))
  const takesKnocks = version.joinRules.has(rule) && (rule === 'knock' || rule === 'knock_restricted')
  if (!takesKnocks) return refuse('This room does not take knocks.')
  // 5.7.2. One knocks for oneself,
  if (event.sender !== target) return refuse('Nobody can knock for someone else.')
  // 5.7.3. from outside, and not when banned or already invited.
  const current = membershipIn(context, target)
  if (current === 'ban') return refuse(`${target} is banned from this room.`)
  if (current === 'join') return refuse(`${target} is already in this room.`)
  return current === 'invite' ? refuse(`${target} is already invited to this room.`) : ALLOWED
}
