import { describe, expect, it } from 'vitest'
import type { JsonObject, JsonValue } from '../../../src/core/json.ts'
import { ALICE, BOB, CAROL, CREATOR, member, powerLevels, roomOf, versions } from './room.ts'

/** Alice, at level 50, may send power levels; she changes `from` into `to`. */
function change(id: string, from: JsonObject, to: JsonObject): boolean {
  const base = { events: { 'm.room.power_levels': 0 } }
  const room = roomOf(id)
    .set(member(ALICE, 'join'))
    .set(powerLevels(merge({ users: { [ALICE]: 50 } }, merge(base, from))))
  return room.judge(powerLevels(merge({ users: { [ALICE]: 50 } }, merge(base, to)), ALICE)).allowed
}

/** Lays one content over another, entry by entry in what both have as an object. */
function merge(base: JsonObject, more: JsonObject): JsonObject {
  const merged: JsonObject = { ...base }
  for (const [key, value] of Object.entries(more)) {
    const both = isPlain(merged[key]) && isPlain(value)
    merged[key] = both ? { ...(merged[key] as JsonObject), ...(value as JsonObject) } : value
  }
  return merged
}

function isPlain(value: JsonValue | undefined): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const NAMED = ['users_default', 'events_default', 'state_default', 'ban', 'redact', 'kick', 'invite']

describe('10.1 to 10.4: what may be written', () => {
  /** The first power levels of a room, by its creator. */
  const first = (id: string, content: JsonObject) =>
    roomOf(id, { additional_creators: [CAROL] }).judge(powerLevels(content)).allowed
  const ODD: JsonValue[] = [null, 'ten', true, [], {}, '9'.repeat(400)]

  it.each(versions(1))('version %s', (id) => {
    const number = Number(id)
    expect(first(id, {})).toBe(true)
    // 10.1, 10.2: only from version 10 on
    for (const odd of [...ODD, '50', 1.5]) {
      for (const key of NAMED) expect([key, odd, first(id, { [key]: odd })]).toEqual([key, odd, number < 10])
      for (const key of ['events', 'notifications']) {
        expect([key, odd, first(id, { [key]: { x: odd } })]).toEqual([key, odd, number < 10])
      }
    }
    for (const odd of [null, 'x', 5, []]) expect(first(id, { events: odd })).toBe(number < 10)
    // 10.3: always, with what the version takes for a level
    for (const odd of ODD) expect([odd, first(id, { users: { [ALICE]: odd } })]).toEqual([odd, false])
    for (const odd of [null, 'x', 5, []]) expect(first(id, { users: odd })).toBe(false)
    for (const name of ['alice', '@alice', '', 'alice:here.example', '@a:bad name']) {
      expect([name, first(id, { users: { [name]: 0 } })]).toEqual([name, false])
    }
    expect(first(id, { users: { [ALICE]: '50' } })).toBe(number < 10)
    expect(first(id, { users: { [ALICE]: 50.5 } })).toBe(number < 6)
    expect(first(id, { users: { [ALICE]: 50 } })).toBe(true)
    // 10.4: creators from version 12 on
    expect(first(id, { users: { [CREATOR]: 100 } })).toBe(number < 12)
    expect(first(id, { users: { [CAROL]: 100 } })).toBe(number < 12)
  })
})

describe('10.6: named levels', () => {
  it.each(versions(1))('version %s', (id) => {
    for (const key of NAMED) {
      // users_default must not reach Alice's own entry; her level stays 50 in all of them.
      const may = (from: JsonObject, to: JsonObject) => [key, change(id, from, to)]
      const base = { state_default: 0, events_default: 0 }
      const of = (level: number | undefined) => (level === undefined ? base : { ...base, [key]: level })
      const without = ({ [key]: _dropped, ...rest }: JsonObject) => rest
      expect(may(of(10), of(50))).toEqual([key, true])
      expect(may(of(50), of(10))).toEqual([key, true])
      expect(may(of(10), of(51))).toEqual([key, false])
      expect(may(of(51), of(10))).toEqual([key, false])
      expect(may(of(51), of(51))).toEqual([key, true])
      expect(may(without(of(10)), of(51))).toEqual([key, false])
      expect(may(without(of(10)), of(50))).toEqual([key, true])
      expect(may(of(51), without(of(51)))).toEqual([key, false])
      expect(may(of(50), without(of(50)))).toEqual([key, true])
    }
  })
})

describe('10.7, 10.8: events and notifications', () => {
  it.each(versions(1))('version %s', (id) => {
    const guarded = Number(id) >= 6 ? ['events', 'notifications'] : ['events']
    for (const map of ['events', 'notifications']) {
      const isFree = !guarded.includes(map)
      const may = (from: JsonObject, to: JsonObject) => [map, change(id, { [map]: from }, { [map]: to })]
      expect(may({ x: 50 }, { x: 10 })).toEqual([map, true])
      expect(may({ x: 51 }, { x: 51 })).toEqual([map, true])
      expect(may({}, { x: 50 })).toEqual([map, true])
      expect(may({ x: 51 }, { x: 50 })).toEqual([map, isFree])
      expect(may({ x: 51 }, {})).toEqual([map, isFree])
      expect(may({}, { x: 51 })).toEqual([map, isFree])
      expect(may({ x: 50 }, { x: 51 })).toEqual([map, isFree])
    }
  })
})

describe('10.9, 10.10: users', () => {
  it.each(versions(1))('version %s', (id) => {
    const may = (from: JsonObject, to: JsonObject) => change(id, { users: from }, { users: to })
    // Others below one's own level
    expect(may({ [BOB]: 49 }, { [BOB]: 50 })).toBe(true)
    expect(may({ [BOB]: 49 }, { [BOB]: 51 })).toBe(false)
    expect(may({ [BOB]: 49 }, {})).toBe(true)
    expect(may({}, { [BOB]: 50 })).toBe(true)
    expect(may({}, { [BOB]: 51 })).toBe(false)
    // others at one's own level or above
    expect(may({ [BOB]: 50 }, { [BOB]: 49 })).toBe(false)
    expect(may({ [BOB]: 50 }, {})).toBe(false)
    expect(may({ [BOB]: 51 }, { [BOB]: 0 })).toBe(false)
    expect(may({ [BOB]: 100 }, { [BOB]: 100 })).toBe(true)
    // oneself
    expect(may({}, { [ALICE]: 49 })).toBe(true)
    expect(may({}, { [ALICE]: 51 })).toBe(false)
  })
})

describe('levels as text', () => {
  it.each(versions(1, 9))('version %s: compared by what they mean, and refused when new and meaningless', (id) => {
    expect(change(id, { ban: '51' }, { ban: 51 })).toBe(true)
    expect(change(id, { ban: '51' }, { ban: '50' })).toBe(false)
    expect(change(id, { ban: 'x' }, { ban: 50 })).toBe(true)
    expect(change(id, { ban: 50 }, { ban: 'x' })).toBe(false)
    expect(change(id, {}, { events: { y: 'x' } })).toBe(false)
  })
})

describe('refusals say why', () => {
  const room = roomOf('11')
    .set(member(ALICE, 'join'))
    .set(powerLevels({ users: { [ALICE]: 50, [BOB]: 60 }, ban: 60 }))
  it.each<[JsonObject, string]>([
    [{ ban: 'x' }, '"ban" must be an integer.'],
    [
      { users: { [ALICE]: 50, [BOB]: 60 }, ban: 10 },
      `"ban" is at power level 60, which ${ALICE}, with 50, cannot change.`,
    ],
    [
      { users: { [ALICE]: 50, [BOB]: 0 }, ban: 60 },
      `${BOB} has power level 60, which ${ALICE}, with 50, cannot change.`,
    ],
    [
      { users: { [ALICE]: 50, [BOB]: 60 }, ban: 60, events: { x: 70 } },
      `${ALICE}, with power level 50, cannot set "x" in "events" to 70.`,
    ],
  ])('%j', (content, reason) => {
    expect(room.judge(powerLevels(content, ALICE))).toMatchObject({ allowed: false, reason })
  })
})
