import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/core/json.ts'
import {
  ALICE,
  BOB,
  CAROL,
  CREATOR,
  joinRule,
  member,
  powerLevels,
  roomOf,
  type Sketch,
  type TestRoom,
  versions,
} from './room.ts'

/** Bob moderates; Alice is whoever the case makes her. */
function roomWith(id: string, levels: JsonObject = {}): TestRoom {
  return roomOf(id)
    .set(powerLevels({ users: { [BOB]: 50 }, ...levels }))
    .set(member(BOB, 'join'))
}

describe('5.1: a membership event says whose and which', () => {
  it.each(versions(1))('version %s', (id) => {
    const room = roomWith(id).set(joinRule('public'))
    expect(room.judge({ type: 'm.room.member', sender: ALICE, content: { membership: 'join' } }).allowed).toBe(false)
    for (const odd of [undefined, null, 7, {}, '', 'JOIN', '__proto__']) {
      const content = (odd === undefined ? {} : { membership: odd }) as JsonObject
      expect(room.judge({ type: 'm.room.member', sender: ALICE, state_key: ALICE, content }).allowed).toBe(false)
    }
  })
})

describe('5.3.1: the first join', () => {
  it.each(versions(1))('version %s', (id) => {
    const room = roomOf(id).set(member(CREATOR, 'leave'))
    const { referencesCarryHashes } = room.version
    const reference = (eventId: string) => (referencesCarryHashes ? [eventId, { sha256: '' }] : eventId)
    const join = (user: string, prev: unknown[]): Sketch => ({ ...member(user, 'join'), prev_events: prev })
    expect(room.judge(join(CREATOR, [reference(room.createId)])).allowed).toBe(true)
    expect(room.judge(join(CREATOR, [reference('$other')])).allowed).toBe(false)
    expect(room.judge(join(CREATOR, [reference(room.createId), reference('$other')])).allowed).toBe(false)
    expect(room.judge(join(CREATOR, [])).allowed).toBe(false)
    expect(room.judge(join(ALICE, [reference(room.createId)])).allowed).toBe(false)
  })
})

describe('5.3: joins by join rule and version', () => {
  const RULES = ['public', 'invite', 'knock', 'private', 'restricted', 'knock_restricted', 'nonsense']
  /** The version from which on a rule lets in those who are invited. */
  const SINCE: Record<string, number> = { public: 1, invite: 1, knock: 7, restricted: 8, knock_restricted: 10 }

  it.each(versions(1))('version %s', (id) => {
    for (const rule of RULES) {
      const isKnown = Number(id) >= (SINCE[rule] ?? Number.POSITIVE_INFINITY)
      const room = roomWith(id).set(joinRule(rule))
      expect([rule, room.judge(member(ALICE, 'join')).allowed]).toEqual([rule, rule === 'public'])
      room.set(member(ALICE, 'invite'))
      expect([rule, room.judge(member(ALICE, 'join')).allowed]).toEqual([rule, isKnown])
      room.set(member(ALICE, 'join'))
      expect([rule, room.judge(member(ALICE, 'join')).allowed]).toEqual([rule, isKnown])
      room.set(member(ALICE, 'ban'))
      expect([rule, room.judge(member(ALICE, 'join')).allowed]).toEqual([rule, false])
    }
  })

  it.each(versions(1))('version %s: without a rule, as by invitation; with an odd one, nobody', (id) => {
    const room = roomWith(id).set(member(ALICE, 'invite'))
    expect(room.judge(member(ALICE, 'join')).allowed).toBe(true)
    expect(room.judge(member(CAROL, 'join')).allowed).toBe(false)
    room.set({ ...joinRule(''), content: { join_rule: 7 } })
    expect(room.judge(member(ALICE, 'join')).allowed).toBe(false)
  })
})

describe('5.2, 5.3.5: restricted joins', () => {
  const join = (authoriser: unknown, more: object = {}): Sketch => ({
    ...member(ALICE, 'join', ALICE, { join_authorised_via_users_server: authoriser } as JsonObject),
    signatures: { 'here.example': {}, 'there.example': {} },
    ...more,
  })

  it.each(versions(8))('version %s: a member with the invite level lets users in', (id) => {
    for (const rule of Number(id) >= 10 ? ['restricted', 'knock_restricted'] : ['restricted']) {
      const room = roomWith(id, { invite: 50 }).set(joinRule(rule)).set(member(CAROL, 'join'))
      expect(room.judge(join(BOB)).allowed).toBe(true)
      expect(room.judge(join(CAROL)).allowed).toBe(false)
      expect(room.judge(join('@gone:there.example')).allowed).toBe(false)
      expect(room.judge(member(ALICE, 'join')).allowed).toBe(false)
      room.set(member(BOB, 'leave'))
      expect(room.judge(join(BOB)).allowed).toBe(false)
    }
  })

  it.each(versions(8))('version %s: the server named has signed, whatever the membership', (id) => {
    const room = roomWith(id, { invite: 50 }).set(joinRule('public'))
    const signatures = { 'here.example': {} }
    expect(room.judge(join(BOB)).allowed).toBe(true)
    expect(room.judge(join(BOB, { signatures })).allowed).toBe(false)
    for (const odd of [null, 7, '', 'nobody']) expect(room.judge(join(odd)).allowed).toBe(false)
    room.set(member(ALICE, 'join'))
    const leave = member(ALICE, 'leave', ALICE, { join_authorised_via_users_server: BOB })
    expect(room.judge({ ...leave, signatures }).allowed).toBe(false)
  })

  it.each(versions(1, 7))('version %s: the key means nothing', (id) => {
    const room = roomWith(id).set(joinRule('public'))
    expect(room.judge(join(BOB, { signatures: { 'here.example': {} } })).allowed).toBe(true)
    expect(room.set(joinRule('restricted')).judge(join(BOB)).allowed).toBe(false)
  })
})

describe('5.4 to 5.6: power over others', () => {
  it.each(versions(1))('version %s: inviting takes its level', (id) => {
    const may = (invite: number) => roomWith(id, { invite }).judge(member(ALICE, 'invite', BOB)).allowed
    expect([may(50), may(51)]).toEqual([true, false])
    const byDefault = roomOf(id)
      .set(powerLevels({}))
      .set(member(BOB, 'join'))
      .judge(member(ALICE, 'invite', BOB)).allowed
    expect(byDefault).toBe(Number(id) >= 7)
  })

  it.each(versions(1))('version %s: kicking takes its level and standing above', (id) => {
    const kick = (levels: JsonObject, target = ALICE) =>
      roomWith(id, levels)
        .set(member(ALICE, 'join'))
        .judge(member(target, 'leave', BOB)).allowed
    expect(kick({})).toBe(true)
    expect(kick({ kick: 51 })).toBe(false)
    expect(kick({ users: { [BOB]: 50, [ALICE]: 50 } })).toBe(false)
    expect(kick({ users: { [BOB]: 50, [ALICE]: 49 } })).toBe(true)
    expect(
      roomWith(id)
        .set(member(BOB, 'leave'))
        .judge(member(ALICE, 'leave', BOB)).allowed,
    ).toBe(false)
  })

  it.each(versions(1))('version %s: banning takes its level and standing above', (id) => {
    const ban = (levels: JsonObject) => roomWith(id, levels).judge(member(ALICE, 'ban', BOB)).allowed
    expect(ban({})).toBe(true)
    expect(ban({ ban: 51 })).toBe(false)
    expect(ban({ users: { [BOB]: 50, [ALICE]: 50 } })).toBe(false)
    expect(
      roomWith(id)
        .set(member(BOB, 'leave'))
        .judge(member(ALICE, 'ban', BOB)).allowed,
    ).toBe(false)
  })

  it.each(versions(1))('version %s: unbanning takes the levels for banning and kicking', (id) => {
    const unban = (levels: JsonObject) =>
      roomWith(id, levels)
        .set(member(ALICE, 'ban'))
        .judge(member(ALICE, 'leave', BOB)).allowed
    expect(unban({})).toBe(true)
    expect(unban({ ban: 51 })).toBe(false)
    expect(unban({ kick: 51 })).toBe(false)
  })
})

describe('5.7: knocks', () => {
  it.each(versions(1))('version %s', (id) => {
    const takes = ['knock', 'knock_restricted', 'public', 'invite', 'restricted'].filter(
      (rule) => roomWith(id).set(joinRule(rule)).judge(member(ALICE, 'knock')).allowed,
    )
    const expected = Number(id) >= 10 ? ['knock', 'knock_restricted'] : Number(id) >= 7 ? ['knock'] : []
    expect(takes).toEqual(expected)
  })

  it.each(versions(7))('version %s: from outside, for oneself, and back again', (id) => {
    const room = roomWith(id).set(joinRule('knock'))
    expect(room.judge(member(ALICE, 'knock', BOB)).allowed).toBe(false)
    for (const [current, allowed] of [
      ['leave', true],
      ['knock', true],
      ['invite', false],
      ['join', false],
      ['ban', false],
    ] as const) {
      expect([current, room.set(member(ALICE, current)).judge(member(ALICE, 'knock')).allowed]).toEqual([
        current,
        allowed,
      ])
    }
    room.set(member(ALICE, 'knock'))
    expect(room.judge(member(ALICE, 'leave')).allowed).toBe(true)
    expect(room.judge(member(ALICE, 'leave', BOB)).allowed).toBe(true)
    expect(room.judge(member(ALICE, 'invite', BOB)).allowed).toBe(true)
    expect(room.judge(member(ALICE, 'join')).allowed).toBe(false)
  })
})

describe('creators from version 12 on', () => {
  it('stand above every level and each other', () => {
    const room = roomOf('12', { additional_creators: [CAROL] })
      .set(member(CAROL, 'join'))
      .set(member(BOB, 'join'))
      .set(powerLevels({ users: { [BOB]: 2 ** 53 - 1 }, ban: 2 ** 53 - 1 }))
    expect(room.judge(member(BOB, 'ban', CAROL)).allowed).toBe(true)
    expect(room.judge(member(CAROL, 'ban', BOB)).allowed).toBe(false)
    expect(room.judge(member(CAROL, 'ban', CREATOR)).allowed).toBe(false)
    expect(room.judge({ type: 'm.room.topic', sender: CAROL, state_key: '' }).allowed).toBe(true)
  })

  it('no one else does in earlier versions', () => {
    const room = roomOf('11', { additional_creators: [CAROL] })
      .set(member(CAROL, 'join'))
      .set(powerLevels({ users: { [BOB]: 50 } }))
    expect(room.judge(member(BOB, 'ban', CAROL)).allowed).toBe(false)
    expect(room.judge(member(BOB, 'ban', CREATOR)).allowed).toBe(false)
  })
})
