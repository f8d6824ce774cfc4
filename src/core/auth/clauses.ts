import type { Refusal } from '../event/format.ts'
import type { RoomVersion } from '../room-version.ts'

/** What a clause of the published rules does: it rejects, it allows, it does one or the other ("if and only if"), or it only contains clauses. */
export type ClauseKind = 'rejects' | 'allows' | 'decides' | 'heading'

type Holds = (version: RoomVersion) => boolean

/**
 * The authorisation rules of all room versions in their published order (room versions, "Authorisation rules"). Their names stay the same
 * while the numbers change from version to version: `member.join.banned` is 5.2.3 in version 1, 4.3.3 in 8 and 5.3.3 in 12.
 */
const OUTLINE = [
  ['create', 'heading'],
  ['create.prev-events', 'rejects'],
  ['create.room-id', 'rejects'],
  ['create.room-version', 'rejects'],
  ['create.creator', 'rejects', (version) => version.createNamesCreator],
  ['create.additional-creators', 'rejects', (version) => version.creatorsAreInfinite],
  ['create.otherwise', 'allows'],
  ['room-id', 'rejects', (version) => version.roomIdIsCreateHash],
  ['auth-events', 'heading'],
  ['auth-events.duplicate', 'rejects'],
  ['auth-events.unselected', 'rejects'],
  ['auth-events.rejected', 'rejects'],
  ['auth-events.no-create', 'rejects', (version) => version.createIsAuthEvent],
  ['auth-events.other-room', 'rejects'],
  ['federate', 'rejects'],
  ['aliases', 'heading', (version) => version.aliasesHaveOwnRule],
  ['aliases.no-state-key', 'rejects'],
  ['aliases.other-server', 'rejects'],
  ['aliases.otherwise', 'allows'],
  ['member', 'heading'],
  ['member.incomplete', 'rejects'],
  ['member.authoriser', 'heading', (version) => version.restrictedJoins],
  ['member.authoriser.unsigned', 'rejects'],
  ['member.join', 'heading'],
  ['member.join.first', 'allows'],
  ['member.join.for-another', 'rejects'],
  ['member.join.banned', 'rejects'],
  ['member.join.invited', 'allows'],
  ['member.join.restricted', 'heading', (version) => version.restrictedJoins],
  ['member.join.restricted.invited', 'allows'],
  ['member.join.restricted.authoriser', 'rejects'],
  ['member.join.restricted.otherwise', 'allows'],
  ['member.join.public', 'allows'],
  ['member.join.otherwise', 'rejects'],
  ['member.invite', 'heading'],
  ['member.invite.third-party', 'heading'],
  ['member.invite.third-party.banned', 'rejects'],
  ['member.invite.third-party.unsigned', 'rejects'],
  ['member.invite.third-party.incomplete', 'rejects'],
  ['member.invite.third-party.other-user', 'rejects'],
  ['member.invite.third-party.unknown-token', 'rejects'],
  ['member.invite.third-party.other-sender', 'rejects'],
  ['member.invite.third-party.signed', 'allows'],
  ['member.invite.third-party.otherwise', 'rejects'],
  ['member.invite.sender-outside', 'rejects'],
  ['member.invite.target-inside', 'rejects'],
  ['member.invite.level', 'allows'],
  ['member.invite.otherwise', 'rejects'],
  ['member.leave', 'heading'],
  ['member.leave.own', 'decides'],
  ['member.leave.sender-outside', 'rejects'],
  ['member.leave.ban-level', 'rejects'],
  ['member.leave.level', 'allows'],
  ['member.leave.otherwise', 'rejects'],
  ['member.ban', 'heading'],
  ['member.ban.sender-outside', 'rejects'],
  ['member.ban.level', 'allows'],
  ['member.ban.otherwise', 'rejects'],
  ['member.knock', 'heading', (version) => version.knocking],
  ['member.knock.join-rule', 'rejects'],
  ['member.knock.for-another', 'rejects'],
  ['member.knock.outside', 'allows'],
  ['member.knock.otherwise', 'rejects'],
  ['member.unknown', 'rejects'],
  ['sender-outside', 'rejects'],
  ['third-party-invite', 'heading'],
  ['third-party-invite.level', 'decides'],
  ['level', 'rejects'],
  ['state-key', 'rejects'],
  ['power-levels', 'heading'],
  ['power-levels.named-types', 'rejects', (version) => version.powerLevelNumbers === 'integers'],
  ['power-levels.map-types', 'rejects', (version) => version.powerLevelNumbers === 'integers'],
  ['power-levels.user-types', 'rejects'],
  ['power-levels.creators', 'rejects', (version) => version.creatorsAreInfinite],
  ['power-levels.first', 'allows'],
  ['power-levels.named', 'heading'],
  ['power-levels.named.current', 'rejects'],
  ['power-levels.named.new', 'rejects'],
  ['power-levels.maps-current', 'heading'],
  ['power-levels.maps-current.level', 'rejects'],
  ['power-levels.maps-new', 'heading'],
  ['power-levels.maps-new.level', 'rejects'],
  ['power-levels.users-current', 'heading'],
  ['power-levels.users-current.level', 'rejects'],
  ['power-levels.users-new', 'heading'],
  ['power-levels.users-new.level', 'rejects'],
  ['power-levels.otherwise', 'allows'],
  ['redaction', 'heading', (version) => version.authRulesCoverRedaction],
  ['redaction.level', 'allows'],
  ['redaction.same-server', 'allows'],
  ['redaction.otherwise', 'rejects'],
  ['otherwise', 'allows'],
] as const satisfies readonly (readonly [name: string, kind: ClauseKind, holds?: Holds])[]

export type Clause = (typeof OUTLINE)[number][0]

export interface NumberedClause {
  /** As published for the version: `5.3.3` */
  readonly number: string
  readonly kind: ClauseKind
}

const numberings = new WeakMap<RoomVersion, ReadonlyMap<string, NumberedClause>>()

/** The clauses of a room version, in order. A clause is left out if its heading is. */
export function clausesOf(version: RoomVersion): ReadonlyMap<string, NumberedClause> {
  const known = numberings.get(version)
  if (known) return known
  const numbered = numberClauses(version)
  numberings.set(version, numbered)
  return numbered
}

function numberClauses(version: RoomVersion): ReadonlyMap<string, NumberedClause> {
  const numbered = new Map<string, NumberedClause>()
  const counts = new Map<string, number>()
  for (const [name, kind, holds = always] of OUTLINE as readonly (readonly [string, ClauseKind, Holds?])[]) {
    const parent = name.slice(0, Math.max(0, name.lastIndexOf('.')))
    if (!holds(version) || (parent !== '' && !numbered.has(parent))) continue
    const count = (counts.get(parent) ?? 0) + 1
    counts.set(parent, count)
    numbered.set(name, { kind, number: parent === '' ? `${count}` : `${numbered.get(parent)!.number}.${count}` })
  }
  return numbered
}

function always(): boolean {
  return true
}

/** A refusal by a clause of the version. */
export function rejectBy(version: RoomVersion, clause: Clause, reason: string): Refusal {
  return { allowed: false, reason, rule: clausesOf(version).get(clause)!.number }
}
