import { describe, expect, it } from 'vitest'
import { authEventKeys, checkAuthEvents } from '../../../src/core/auth/select.ts'
import { ALICE, BOB, CREATOR, joinRule, member, powerLevels, roomOf, type Sketch, versions } from './room.ts'

const BASE = [
  ['m.room.power_levels', ''],
  ['m.room.member', ALICE],
]
const TARGET = ['m.room.member', BOB]
const JOIN_RULES = ['m.room.join_rules', '']

describe('auth events selection (server-server API)', () => {
  it.each(versions(1))('version %s', (id) => {
    const room = roomOf(id)
    const keys = (sketch: Sketch) => authEventKeys(room.version, room.pdu(sketch))
    const create = Number(id) < 12 ? [['m.room.create', '']] : []
    const base = [...create, ...BASE]
    expect(authEventKeys(room.version, room.create)).toEqual([])
    expect(keys({ type: 'm.room.message', sender: ALICE })).toEqual(base)
    expect(keys({ type: 'm.room.topic', sender: ALICE, state_key: '' })).toEqual(base)
    expect(keys(member(ALICE, 'join'))).toEqual([...base, JOIN_RULES])
    expect(keys(member(ALICE, 'knock'))).toEqual([...base, JOIN_RULES])
    expect(keys(member(ALICE, 'leave'))).toEqual(base)
    expect(keys(member(BOB, 'invite', ALICE))).toEqual([...base, TARGET, JOIN_RULES])
    expect(keys(member(BOB, 'ban', ALICE))).toEqual([...base, TARGET])
    expect(keys(member(BOB, 'leave', ALICE))).toEqual([...base, TARGET])
    const invite = (signed: object) => member(BOB, 'invite', ALICE, { third_party_invite: { signed: { ...signed } } })
    expect(keys(invite({ token: 'abc' }))).toEqual([...base, TARGET, JOIN_RULES, ['m.room.third_party_invite', 'abc']])
    expect(keys(invite({ token: 7 }))).toEqual([...base, TARGET, JOIN_RULES])
    const restricted = (membership: string, authoriser: string) =>
      member(ALICE, membership, ALICE, { join_authorised_via_users_server: authoriser })
    expect(keys(restricted('join', BOB))).toEqual([...base, JOIN_RULES, ...(Number(id) >= 8 ? [TARGET] : [])])
    expect(keys(restricted('join', ALICE))).toEqual([...base, JOIN_RULES])
    expect(keys(restricted('leave', BOB))).toEqual(base)
    expect(keys({ type: 'm.room.member', sender: ALICE, content: { membership: 'join' } })).toEqual(base)
  })
})

describe("an event's own auth events", () => {
  it.each(versions(1))('version %s', (id) => {
    const room = roomOf(id)
    const cite = (...sketches: Sketch[]) => sketches.map((sketch) => ({ pdu: room.pdu(sketch), isRejected: false }))
    const create = { pdu: room.create, isRejected: false }
    const needed = Number(id) < 12 ? [create] : []
    const check = (cited: typeof needed, event: Sketch = { type: 'm.room.message', sender: CREATOR }) =>
      checkAuthEvents(room.version, room.pdu(event), cited).allowed
    const levels = powerLevels({})
    const joined = member(CREATOR, 'join')
    expect(check([...needed, ...cite(levels, joined)])).toBe(true)
    expect(check([...needed, ...cite(joined)])).toBe(true)
    // 1. twice the same
    expect(check([...needed, ...cite(levels, levels)])).toBe(false)
    // 2. not selected, or no state
    expect(check([...needed, ...cite(joinRule('public'))])).toBe(false)
    expect(check([...needed, ...cite(joinRule('public'))], member(CREATOR, 'join'))).toBe(true)
    expect(check([...needed, ...cite(member(BOB, 'join'))])).toBe(false)
    expect(check([...needed, ...cite({ type: 'm.room.power_levels', sender: CREATOR })])).toBe(false)
    // 3. rejected
    expect(check([...needed, ...cite(levels).map((cited) => ({ ...cited, isRejected: true }))])).toBe(false)
    // 4. without the create event; in version 12 with it
    expect(check(cite(levels, joined))).toBe(id === '12')
    if (id === '12') expect(check([create, ...cite(joined)])).toBe(false)
    // 5. another room
    expect(check([...needed, ...cite({ ...levels, room_id: '!other:here.example' })])).toBe(false)
  })
})
