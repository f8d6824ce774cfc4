import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clausesOf } from '../../src/core/auth/clauses.ts'
import { readPowerLevels } from '../../src/core/auth/power-levels.ts'
import { checkAuthEvents } from '../../src/core/auth/select.ts'
import * as read from '../../src/core/event/content.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { ROOM_VERSIONS } from '../../src/core/room-version.ts'
import { ALICE, BOB, CAROL, CREATOR, joinRule, member, powerLevels, roomOf } from '../core/auth/room.ts'

const versionId = fc.constantFrom(...ROOM_VERSIONS.map(({ id }) => id))
const user = fc.constantFrom(ALICE, BOB, CAROL, CREATOR)
const anyJson = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<never>

/** Content under the names that the rules look at, with values of any kind, often of the right one. */
const content = fc.dictionary(
  fc.constantFrom(
    ...['membership', 'third_party_invite', 'join_authorised_via_users_server', 'join_rule', 'users', 'events'],
    ...['notifications', 'ban', 'kick', 'invite', 'users_default', 'creator', 'additional_creators', 'm.federate'],
    ...['room_version', 'redacts', 'public_keys', 'alias', 'predecessor', 'allow'],
  ),
  fc.oneof(
    anyJson,
    fc.constantFrom('join', 'invite', 'knock', 'ban', 'leave', 'public', ALICE, '50', 50, 1.5, true),
    fc.dictionary(fc.oneof(user, fc.string()), fc.oneof(fc.integer(), anyJson)),
    fc.record({ signed: fc.record({ mxid: user, token: fc.constant('t'), signatures: anyJson }) }),
  ),
) as fc.Arbitrary<JsonObject>

const type = fc.constantFrom(
  ...['m.room.create', 'm.room.member', 'm.room.power_levels', 'm.room.join_rules', 'm.room.redaction'],
  ...['m.room.aliases', 'm.room.third_party_invite', 'm.room.message', '__proto__'],
)

const sketch = fc
  .record({ type, sender: user, content, key: fc.option(fc.oneof(user, fc.constantFrom('', 't')), { nil: undefined }) })
  .map(({ key, ...rest }) => (key === undefined ? rest : { ...rest, state_key: key }))

describe('the authorisation rules', () => {
  it('answer for any content of the event and of the state', () => {
    fc.assert(
      fc.property(versionId, sketch, fc.array(sketch, { maxLength: 5 }), (id, event, state) => {
        const room = roomOf(id)
        for (const each of state) room.set({ state_key: '', ...each })
        const verdict = room.judge(event)
        const rules = [...clausesOf(room.version).values()].map(({ number }) => number)
        expect(verdict.allowed || (verdict.reason.length > 10 && rules.includes(verdict.rule!))).toBe(true)
        checkAuthEvents(room.version, room.pdu(event), [{ pdu: room.pdu(event), isRejected: false }])
      }),
      { numRuns: 600 },
    )
  })

  it('every reader gives an answer for any content', () => {
    const { statedMembership, redactsOf, creatorsOf, joinAuthoriserOf, signedInviteOf, ...readers } = read
    fc.assert(
      fc.property(content, fc.dictionary(fc.string(), anyJson), (named, other) => {
        const event = { content: { ...other, ...named }, redacts: 7 }
        for (const reader of Object.values(readers)) reader(event)
        statedMembership(event.content)
        joinAuthoriserOf(event.content)
        signedInviteOf(event.content)
        for (const version of ROOM_VERSIONS) {
          redactsOf(version, event)
          creatorsOf(version, { sender: ALICE, content: event.content })
        }
      }),
    )
  })

  const level = fc.integer({ min: -5, max: 105 })
  const levels = fc
    .record(
      {
        users: fc.dictionary(fc.constantFrom(ALICE, BOB, CAROL), level),
        users_default: level,
        ban: level,
        kick: level,
        events: fc.dictionary(fc.constantFrom('x.a', 'm.room.power_levels'), level),
      },
      { requiredKeys: [] },
    )
    .map((record) => record as JsonObject)

  it('nobody who changes power levels raises anyone above themselves, or lowers who is not below them', () => {
    fc.assert(
      fc.property(versionId, levels, levels, (id, before, after) => {
        const room = roomOf(id).set(member(ALICE, 'join')).set(joinRule('public')).set(powerLevels(before))
        if (!room.judge(powerLevels(after, ALICE)).allowed) return
        const [old, now] = [before, after].map((each) => readPowerLevels(room.version, each, room.create))
        const own = old!.levelOf(ALICE)
        const users = { ...(before.users as JsonObject), ...(after.users as JsonObject) }
        for (const listed of Object.keys(users)) {
          const [was, is] = [old!.levelOf(listed), now!.levelOf(listed)]
          const isListedAnew = Object.hasOwn((after.users ?? {}) as JsonObject, listed)
          expect(is <= own || is === was || !isListedAnew).toBe(true)
          const wasListed = Object.hasOwn((before.users ?? {}) as JsonObject, listed)
          expect(!wasListed || listed === ALICE || was < own || was === is || !isListedAnew).toBe(true)
        }
        // A level that is taken out becomes the rules' default, which may be above the one who does so.
        expect(now!.ban <= own || now!.ban === old!.ban || !Object.hasOwn(after, 'ban')).toBe(true)
        const [was, is] = [old!.levelOf('@new:x.example'), now!.levelOf('@new:x.example')]
        expect(is <= own || is === was || !Object.hasOwn(after, 'users_default')).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })
})
