import { creatorsOf, joinAuthoriserOf, joinRuleOf, type Membership } from '../event/content.ts'
import { ALLOWED, type Pdu, referencedId, type Verdict } from '../event/format.ts'
import { isUserId, serverOf } from '../ids.ts'
import { type Clause, rejectBy } from './clauses.ts'
import { type AuthContext, idOfCreate, membershipIn } from './context.ts'
import { lackOfPower } from './power-levels.ts'
import { authoriseThirdPartyInvite } from './third-party-invite.ts'

// Clauses of rule 5 (rule 4 in room versions 6 to 11), numbered as in room version 12; before version 8 there is no 5.2.

const BY_MEMBERSHIP: ReadonlyMap<unknown, (context: AuthContext, target: string) => Verdict> = new Map([
  ['join', authoriseJoin],
  ['invite', authoriseInvite],
  ['leave', authoriseLeave],
  ['ban', authoriseBan],
  ['knock', authoriseKnock],
])

/** 5. `m.room.member` */
export function authoriseMember(context: AuthContext): Verdict {
  const { version, event } = context
  const { content, state_key: target } = event
  // 5.1. The event must have a state key and a membership.
  if (target === undefined || content.membership === undefined) {
    return rejectBy(version, 'member.incomplete', 'A membership event needs a user as its state key and a membership.')
  }
  // 5.2. A join that names an authorising user must have the signature of that user's server.
  if (
    version.restrictedJoins &&
    content.join_authorised_via_users_server !== undefined &&
    !isSignedForAuthoriser(event)
  ) {
    const reason = 'The server of join_authorised_via_users_server has not signed the event.'
    return rejectBy(version, 'member.authoriser.unsigned', reason)
  }
  // 5.3 to 5.7, by membership. 5.8. Any other membership is rejected.
  const rule = BY_MEMBERSHIP.get(content.membership)
  return rule ? rule(context, target) : unknownMembership(context)
}

function unknownMembership({ version }: AuthContext): Verdict {
  return rejectBy(version, 'member.unknown', 'This room version knows no such membership.')
}

/** Whether the signature is present. It is verified on receipt, together with the sender's. */
function isSignedForAuthoriser(event: Pdu): boolean {
  const authoriser = joinAuthoriserOf(event.content)
  return isUserId(authoriser) && Object.hasOwn(event.signatures, serverOf(authoriser))
}

/** 5.3. */
function authoriseJoin(context: AuthContext, target: string): Verdict {
  const { version, event } = context
  // 5.3.1. The creator may join right after the create event.
  if (isFirstJoin(context, target)) return ALLOWED
  // 5.3.2. Users join only for themselves.
  if (event.sender !== target) {
    return rejectBy(version, 'member.join.for-another', 'Nobody can join a room for someone else.')
  }
  // 5.3.3. A banned user cannot join.
  const current = membershipIn(context, target)
  if (current === 'ban') return rejectBy(version, 'member.join.banned', `${target} is banned from this room.`)
  const rule = joinRuleOf(context.state('m.room.join_rules', ''))
  // 5.3.7. With a join rule that the room version does not know, nobody can join.
  if (!version.joinRules.has(rule)) {
    const reason = "Nobody can join: the room's join rule is not one of its version."
    return rejectBy(version, 'member.join.otherwise', reason)
  }
  // 5.3.6. Everybody may join a public room.
  if (rule === 'public') return ALLOWED
  // 5.3.4, 5.3.5.1. Invited and joined users may join any other room.
  if (current === 'invite' || current === 'join') return ALLOWED
  // 5.3.5.2. In a restricted room, a member may authorise the join.
  if (rule === 'restricted' || rule === 'knock_restricted') return authoriseRestrictedJoin(context)
  // 5.3.7.
  return rejectBy(version, 'member.join.otherwise', 'You are not invited to this room.')
}

/** Whether the create event is the only previous event, and the target the creator. */
function isFirstJoin(context: AuthContext, target: string): boolean {
  const { version, event, create } = context
  const [previous, ...more] = event.prev_events
  const [creator] = creatorsOf(version, create)
  if (target !== creator || previous === undefined || more.length > 0) return false
  return referencedId(previous) === idOfCreate(version, create)
}

/** 5.3.5.2. The authorising user must be a member who may invite. */
function authoriseRestrictedJoin(context: AuthContext): Verdict {
  const { levels } = context
  const refuse = (reason: string) => rejectBy(context.version, 'member.join.restricted.authoriser', reason)
  const authoriser = joinAuthoriserOf(context.event.content)
  if (authoriser === undefined) return refuse('You are neither invited to this room nor let in by one of its members.')
  if (membershipIn(context, authoriser) !== 'join')
    return refuse(`${authoriser}, who lets you in, is not in this room.`)
  const level = levels.levelOf(authoriser)
  return level >= levels.invite ? ALLOWED : refuse(lackOfPower(authoriser, level, 'let users in', levels.invite))
}

/** 5.4. */
function authoriseInvite(context: AuthContext, target: string): Verdict {
  const { version, event, levels } = context
  // 5.4.1. Third-party invites have rules of their own.
  if (event.content.third_party_invite !== undefined) return authoriseThirdPartyInvite(context, target)
  // 5.4.2. The sender must be joined.
  if (membershipIn(context, event.sender) !== 'join') return senderOutside(context, 'member.invite.sender-outside')
  // 5.4.3. The target must not be joined or banned.
  const current = membershipIn(context, target)
  if (current === 'join' || current === 'ban') {
    const reason = `${target} is ${current === 'join' ? 'already in' : 'banned from'} this room.`
    return rejectBy(version, 'member.invite.target-inside', reason)
  }
  // 5.4.4. The sender needs the level for inviting.
  const level = levels.levelOf(event.sender)
  if (level >= levels.invite) return ALLOWED
  // 5.4.5.
  return rejectBy(version, 'member.invite.otherwise', lackOfPower(event.sender, level, 'invite', levels.invite))
}

function senderOutside({ version, event }: AuthContext, clause: Clause): Verdict {
  return rejectBy(version, clause, `${event.sender} is not in this room.`)
}

/** 5.5. */
function authoriseLeave(context: AuthContext, target: string): Verdict {
  const { version, event, levels } = context
  const { sender } = event
  const current = membershipIn(context, target)
  // 5.5.1. Joined users may leave; invited users may decline; users who knocked may retract the knock.
  if (sender === target) {
    const mayLeave = current === 'join' || current === 'invite' || (version.knocking && current === 'knock')
    if (mayLeave) return ALLOWED
    const reason = `${target} is ${current === 'ban' ? 'banned from' : 'not in'} this room.`
    return rejectBy(version, 'member.leave.own', reason)
  }
  // 5.5.2. To kick, the sender must be joined.
  if (membershipIn(context, sender) !== 'join') return senderOutside(context, 'member.leave.sender-outside')
  const level = levels.levelOf(sender)
  // 5.5.3. To unban, the sender also needs the level for banning.
  if (current === 'ban' && level < levels.ban) {
    return rejectBy(version, 'member.leave.ban-level', lackOfPower(sender, level, 'lift a ban', levels.ban))
  }
  // 5.5.4. The sender needs the level for kicking, and a higher level than the target. 5.5.5.
  const clause = 'member.leave.otherwise'
  if (level < levels.kick) return rejectBy(version, clause, lackOfPower(sender, level, 'remove users', levels.kick))
  return standsAbove(context, target, clause)
}

/** 5.6. */
function authoriseBan(context: AuthContext, target: string): Verdict {
  const { version, event, levels } = context
  // 5.6.1. The sender must be joined.
  if (membershipIn(context, event.sender) !== 'join') return senderOutside(context, 'member.ban.sender-outside')
  // 5.6.2. The sender needs the level for banning, and a higher level than the target. 5.6.3.
  const level = levels.levelOf(event.sender)
  const clause = 'member.ban.otherwise'
  if (level < levels.ban) return rejectBy(version, clause, lackOfPower(event.sender, level, 'ban', levels.ban))
  return standsAbove(context, target, clause)
}

function standsAbove({ version, event, levels }: AuthContext, target: string, clause: Clause): Verdict {
  if (levels.levelOf(target) < levels.levelOf(event.sender)) return ALLOWED
  return rejectBy(version, clause, `${target} has as much power in this room as ${event.sender}.`)
}

/** 5.7. From room version 7 on */
function authoriseKnock(context: AuthContext, target: string): Verdict {
  const { version, event } = context
  if (!version.knocking) return unknownMembership(context)
  // 5.7.1. The join rule must allow knocks.
  const rule = joinRuleOf(context.state('m.room.join_rules', ''))
  const takesKnocks = version.joinRules.has(rule) && (rule === 'knock' || rule === 'knock_restricted')
  if (!takesKnocks) return rejectBy(version, 'member.knock.join-rule', 'This room does not take knocks.')
  // 5.7.2. Users knock only for themselves.
  if (event.sender !== target) {
    return rejectBy(version, 'member.knock.for-another', 'Nobody can knock for someone else.')
  }
  // 5.7.3. The user must not be banned, invited or joined. 5.7.4.
  const standing = STANDINGS.get(membershipIn(context, target))
  if (standing === undefined) return ALLOWED
  return rejectBy(version, 'member.knock.otherwise', `${target} is ${standing} this room.`)
}

/** The memberships with which a user cannot knock, in words. */
const STANDINGS: ReadonlyMap<Membership, string> = new Map([
  ['ban', 'banned from'],
  ['join', 'already in'],
  ['invite', 'already invited to'],
])
