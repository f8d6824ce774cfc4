import { describe, expect, it } from 'vitest'
import { ALICE, BOB, CREATOR, joinRule, member, powerLevels, roomOf, versions } from './room.ts'

/** Alice's membership, what it becomes, and who may make it so: Alice herself, or a moderator of the room. */
type Row = [from: string, to: string, bySelf: Answer, byModerator: Answer, meaning: string]
/** `public` and `invited-only` rooms differ in nothing but joins without an invitation. */
type Answer = 'yes' | 'no' | 'if public'

const TABLE: Row[] = [
  ['invite', 'invite', 'no', 'yes', 'no change'],
  ['invite', 'join', 'yes', 'no', 'user joined'],
  ['invite', 'leave', 'yes', 'yes', 'rejected by the user, revoked by another'],
  ['invite', 'ban', 'no', 'yes', 'user banned'],
  ['join', 'invite', 'no', 'no', 'must never happen'],
  ['join', 'join', 'yes', 'no', 'display name or avatar changed'],
  ['join', 'leave', 'yes', 'yes', 'left, or kicked by another'],
  ['join', 'ban', 'no', 'yes', 'kicked and banned'],
  ['leave', 'invite', 'no', 'yes', 'new invitation'],
  ['leave', 'join', 'if public', 'no', 'user joined'],
  ['leave', 'leave', 'no', 'yes', 'no change'],
  ['leave', 'ban', 'no', 'yes', 'banned'],
  ['ban', 'invite', 'no', 'no', 'must never happen'],
  ['ban', 'join', 'no', 'no', 'must never happen'],
  ['ban', 'leave', 'no', 'yes', 'unbanned'],
  ['ban', 'ban', 'no', 'yes', 'no change'],
  ['invite', 'knock', 'no', 'no', 'not without a rule for it'],
  ['join', 'knock', 'no', 'no', 'not without a rule for it'],
  ['leave', 'knock', 'no', 'no', 'not without a rule for it'],
  ['ban', 'knock', 'no', 'no', 'not without a rule for it'],
]

function answerIn(rule: string, answer: Answer): boolean {
  return answer === 'yes' || (answer === 'if public' && rule === 'public')
}

describe.each(versions(1))('membership in room version %s', (versionId) => {
  describe.each(['public', 'invite'])('join rule %s', (rule) => {
    it.each(TABLE)('%s -> %s: self %s, moderator %s (%s)', (from, to, bySelf, byModerator) => {
      const room = roomOf(versionId)
        .set(joinRule(rule))
        .set(powerLevels({ users: { [ALICE]: 10 } }))
      const moderator = room.version.creatorsAreInfinite ? CREATOR : '@moderator:here.example'
      room.set(member(moderator, 'join')).set(powerLevels({ users: { [moderator]: 50 } }))
      if (from !== 'leave') room.set(member(ALICE, from))
      expect(room.judge(member(ALICE, to)).allowed).toBe(answerIn(rule, bySelf))
      expect(room.judge(member(ALICE, to, moderator)).allowed).toBe(answerIn(rule, byModerator))
    })
  })

  it('one who left counts as one who was never there', () => {
    const room = roomOf(versionId).set(joinRule('public')).set(member(ALICE, 'leave'))
    expect(room.judge(member(ALICE, 'join')).allowed).toBe(true)
    expect(room.judge(member(ALICE, 'leave')).allowed).toBe(false)
  })
})

describe('refusals say why', () => {
  const room = roomOf('11')
    .set(joinRule('invite'))
    .set(powerLevels({ users: { [CREATOR]: 100 }, invite: 50 }))
    .set(member(BOB, 'ban', CREATOR))
  it.each([
    [member(ALICE, 'join'), 'You are not invited to this room.'],
    [member(ALICE, 'join', CREATOR), 'Nobody can join a room for someone else.'],
    [member(CREATOR, 'invite', ALICE), `${ALICE} is not in this room.`],
    [member(CREATOR, 'invite'), `${CREATOR} is already in this room.`],
    [member(ALICE, 'leave'), `${ALICE} is not in this room.`],
    [member(BOB, 'leave'), `${BOB} is banned from this room.`],
    [member(BOB, 'join'), `${BOB} is banned from this room.`],
    [member(ALICE, 'dance'), 'This room version knows no such membership.'],
  ])('%#', (event, reason) => {
    expect(room.judge(event)).toMatchObject({ allowed: false, reason })
  })
})
