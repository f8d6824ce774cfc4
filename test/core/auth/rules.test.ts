import { describe, expect, it } from 'vitest'
import { authorise } from '../../../src/core/auth/rules.ts'
import type { JsonObject, JsonValue } from '../../../src/core/json.ts'
import {
  ALICE,
  BOB,
  CAROL,
  CREATOR,
  createPdu,
  joinRule,
  member,
  powerLevels,
  roomOf,
  versionOf,
  versions,
} from './room.ts'

const NO_STATE = () => undefined

describe('rule 1: m.room.create', () => {
  it.each(versions(1))('in version %s', (id) => {
    const version = versionOf(id)
    const allowed = (content?: JsonObject, more?: object) =>
      authorise(version, createPdu(version, content, more), NO_STATE).allowed
    expect(allowed()).toBe(true)
    // 1.1
    expect(allowed({}, { prev_events: ['$x'] })).toBe(false)
    // 1.2
    const isBefore12 = Number(id) < 12
    expect(allowed({}, { room_id: '!room:here.example' })).toBe(isBefore12)
    expect(allowed({}, { room_id: '!room:there.example' })).toBe(false)
    expect(allowed({}, { room_id: `!${'a'.repeat(43)}` })).toBe(false)
    // 1.3
    expect(allowed({ room_version: '99' })).toBe(false)
    expect(allowed({ room_version: 6 })).toBe(false)
    expect(allowed({ room_version: null })).toBe(false)
    expect(allowed({ room_version: '6' })).toBe(true)
    // 1.4 up to version 10; of additional_creators from 12 on
    const { creator, ...uncredited } = createPdu(version).content
    expect(allowed({}, { content: uncredited })).toBe(Number(id) > 10)
    for (const odd of [null, 'x', {}, [1], ['not a user id'], [ALICE, '@nobody'], ['@x:bad name']] as JsonValue[]) {
      expect(allowed({ additional_creators: odd })).toBe(isBefore12)
    }
    expect(allowed({ additional_creators: [ALICE] })).toBe(true)
    expect(allowed({ additional_creators: [] })).toBe(true)
  })
})

describe('rule 2 of version 12: the room id is the create event', () => {
  it('an event of another room is refused, and one of none', () => {
    const room = roomOf('12')
    const message = { type: 'm.room.message', sender: CREATOR }
    expect(room.judge(message).allowed).toBe(true)
    expect(room.judge({ ...message, room_id: `!${'a'.repeat(43)}` }).allowed).toBe(false)
    expect(room.judge({ ...message, room_id: undefined }).allowed).toBe(false)
  })

  it.each(versions(1))('version %s: without a create event nothing is allowed', (id) => {
    const room = roomOf(id)
    expect(authorise(room.version, room.pdu(member(ALICE, 'join')), NO_STATE).allowed).toBe(false)
  })
})

describe('rule 3: m.federate', () => {
  it.each(versions(1))('version %s', (id) => {
    const open = roomOf(id).set(joinRule('public'))
    const closed = roomOf(id, { 'm.federate': false }).set(joinRule('public'))
    const odd = roomOf(id, { 'm.federate': 'false' }).set(joinRule('public'))
    expect(open.judge(member(BOB, 'join')).allowed).toBe(true)
    expect(odd.judge(member(BOB, 'join')).allowed).toBe(true)
    expect(closed.judge(member(BOB, 'join'))).toMatchObject({
      allowed: false,
      reason: 'This room is closed to users of other servers.',
    })
    expect(closed.judge(member(ALICE, 'join')).allowed).toBe(true)
  })
})

describe('rule 4 of versions 1 to 5: m.room.aliases', () => {
  const aliases = (sender: string, key: string) => ({ type: 'm.room.aliases', sender, state_key: key })
  it.each(versions(1, 5))('version %s: a server lists its own, member or not', (id) => {
    const room = roomOf(id)
    expect(room.judge(aliases(BOB, 'there.example')).allowed).toBe(true)
    expect(room.judge(aliases(BOB, 'here.example')).allowed).toBe(false)
    expect(room.judge({ type: 'm.room.aliases', sender: CREATOR }).allowed).toBe(false)
  })
  it.each(versions(6))('version %s: as any state', (id) => {
    const room = roomOf(id)
    expect(room.judge(aliases(BOB, 'there.example')).allowed).toBe(false)
    expect(room.judge(aliases(CREATOR, 'anything')).allowed).toBe(true)
  })
})

describe('rules 6 to 9: what a member with power may send', () => {
  it.each(versions(1))('version %s', (id) => {
    const room = roomOf(id)
      .set(member(ALICE, 'join'))
      .set(member(BOB, 'invite'))
      .set(
        powerLevels({
          users: { [ALICE]: 30 },
          events: { 'x.special': 40 },
          events_default: 10,
          state_default: 20,
          invite: 31,
        }),
      )
    const may = (sender: string, type: string, key?: string) =>
      room.judge({ type, sender, ...(key === undefined ? {} : { state_key: key }) }).allowed
    // 6. Only those inside
    expect(may(BOB, 'm.room.message')).toBe(false)
    expect(may(CAROL, 'm.room.message')).toBe(false)
    expect(may(ALICE, 'm.room.message')).toBe(true)
    // 7. A third-party invite takes the invite level, whatever state takes.
    expect(may(ALICE, 'm.room.third_party_invite', 'token')).toBe(false)
    room.set(
      powerLevels({
        users: { [ALICE]: 30 },
        state_default: 99,
        invite: 30,
        events: { 'm.room.third_party_invite': 99 },
      }),
    )
    expect(may(ALICE, 'm.room.third_party_invite', 'token')).toBe(true)
    // 8. The type's level
    room.set(
      powerLevels({
        users: { [ALICE]: 30 },
        events: { 'x.special': 40, 'x.easy': 0 },
        events_default: 31,
        state_default: 30,
      }),
    )
    expect(may(ALICE, 'm.room.message')).toBe(false)
    expect(may(ALICE, 'x.easy')).toBe(true)
    expect(may(ALICE, 'm.room.topic', '')).toBe(true)
    expect(may(ALICE, 'x.special', '')).toBe(false)
    // 9. State under a user's id
    expect(may(ALICE, 'x.state', ALICE)).toBe(true)
    expect(may(ALICE, 'x.state', BOB)).toBe(false)
    expect(may(ALICE, 'x.state', '@')).toBe(false)
    expect(may(ALICE, 'x.state', `_${BOB}`)).toBe(true)
  })

  it('says what was missing', () => {
    const room = roomOf('10')
      .set(member(ALICE, 'join'))
      .set(powerLevels({ users: { [CREATOR]: 100 } }))
    expect(room.judge({ type: 'm.room.topic', sender: ALICE, state_key: '' })).toMatchObject({
      allowed: false,
      reason: `To send m.room.topic takes power level 50; ${ALICE} has 0.`,
    })
  })
})

describe('levels before there is a power-levels event', () => {
  it.each(versions(1))('version %s', (id) => {
    const room = roomOf(id).set(member(ALICE, 'join'))
    const isOld = Number(id) <= 6
    expect(room.judge({ type: 'm.room.message', sender: ALICE }).allowed).toBe(true)
    expect(room.judge({ type: 'm.room.topic', sender: ALICE, state_key: '' }).allowed).toBe(isOld)
    expect(room.judge(member(BOB, 'invite', ALICE)).allowed).toBe(!isOld)
    expect(room.judge({ type: 'm.room.topic', sender: CREATOR, state_key: '' }).allowed).toBe(true)
    expect(room.judge(member(ALICE, 'ban', CREATOR)).allowed).toBe(true)
  })

  it('the creator is whom content.creator names up to version 10, the sender from 11 on', () => {
    const topic = (sender: string) => ({ type: 'm.room.topic', sender, state_key: '' })
    const levels = versions(7).map((id) => {
      const room = roomOf(id, { creator: ALICE }).set(member(ALICE, 'join'))
      return [room.judge(topic(ALICE)).allowed, room.judge(topic(CREATOR)).allowed]
    })
    expect(levels).toEqual([...Array(4).fill([true, false]), ...Array(2).fill([false, true])])
  })
})

describe('rule 11: m.room.redaction', () => {
  const redaction = (redacts: string) => ({ type: 'm.room.redaction', sender: ALICE, redacts })
  it.each(versions(1, 2))('version %s: with the redact level, or for events of the same server', (id) => {
    const room = roomOf(id)
      .set(member(ALICE, 'join'))
      .set(powerLevels({ redact: 10 }))
    expect(room.judge(redaction('$any:here.example')).allowed).toBe(true)
    expect(room.judge(redaction('$any:there.example')).allowed).toBe(false)
    expect(room.judge(redaction('$any')).allowed).toBe(false)
    expect(room.judge({ type: 'm.room.redaction', sender: ALICE }).allowed).toBe(false)
    room.set(powerLevels({ redact: 10, users: { [ALICE]: 10 } }))
    expect(room.judge(redaction('$any:there.example')).allowed).toBe(true)
  })
  it.each(versions(3))('version %s: as any event', (id) => {
    const room = roomOf(id)
      .set(member(ALICE, 'join'))
      .set(powerLevels({ redact: 10 }))
    expect(room.judge(redaction('$any')).allowed).toBe(true)
    room.set(powerLevels({ events: { 'm.room.redaction': 1 } }))
    expect(room.judge(redaction('$any')).allowed).toBe(false)
  })
})
