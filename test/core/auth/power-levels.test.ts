import { describe, expect, it } from 'vitest'
import { mayAskToRedact, mayRedact, readLevel, readPowerLevels } from '../../../src/core/auth/power-levels.ts'
import type { JsonObject, JsonValue } from '../../../src/core/json.ts'
import { ALICE, BOB, CAROL, CREATOR, createPdu, versionOf, versions } from './room.ts'

const read = (id: string, content?: JsonObject, createContent?: JsonObject) =>
  readPowerLevels(versionOf(id), content, createPdu(versionOf(id), createContent))

describe('values of levels', () => {
  /** A value and what it is in versions 1 to 5, 6 to 9, and from 10 on. */
  it.each<[JsonValue, number | undefined, number | undefined, number | undefined]>([
    [50, 50, 50, 50],
    [-5, -5, -5, -5],
    [50.57, 50, undefined, undefined],
    [-50.57, -50, undefined, undefined],
    ['100', 100, 100, undefined],
    [' +0100 ', 100, 100, undefined],
    ['-100', -100, -100, undefined],
    ['\t7\n', 7, 7, undefined],
    ['50.5', undefined, undefined, undefined],
    ['5e1', undefined, undefined, undefined],
    ['0x10', undefined, undefined, undefined],
    ['+-5', undefined, undefined, undefined],
    ['', undefined, undefined, undefined],
    ['9'.repeat(400), undefined, undefined, undefined],
    [null, undefined, undefined, undefined],
    [true, undefined, undefined, undefined],
    [[50], undefined, undefined, undefined],
    [{}, undefined, undefined, undefined],
  ])('%j', (value, oldest, older, current) => {
    for (const id of versions(1, 5)) expect(readLevel(versionOf(id), value)).toBe(oldest)
    for (const id of versions(6, 9)) expect(readLevel(versionOf(id), value)).toBe(older)
    for (const id of versions(10)) expect(readLevel(versionOf(id), value)).toBe(current)
  })
})

describe('levels of a room', () => {
  it.each(versions(1))('version %s: defaults of an empty event', (id) => {
    const levels = read(id, {})
    expect(levels).toMatchObject({ ban: 50, kick: 50, redact: 50, invite: Number(id) <= 6 ? 50 : 0 })
    expect([levels.toSend('x', true), levels.toSend('x', false), levels.toNotify('room')]).toEqual([50, 0, 50])
    expect([levels.levelOf(ALICE), levels.levelOf(CREATOR)]).toEqual([0, id === '12' ? Number.POSITIVE_INFINITY : 0])
  })

  it.each(versions(1))('version %s: without an event', (id) => {
    const levels = read(id)
    expect(levels).toMatchObject({ ban: 50, kick: 50, redact: 50, invite: Number(id) <= 6 ? 50 : 0 })
    expect([levels.toSend('x', true), levels.toSend('x', false)]).toEqual([Number(id) <= 6 ? 0 : 50, 0])
    expect([levels.levelOf(ALICE), levels.levelOf(CREATOR)]).toEqual([0, id === '12' ? Number.POSITIVE_INFINITY : 100])
  })

  it('what is set', () => {
    const levels = read('10', {
      ban: 1,
      kick: 2,
      redact: 3,
      invite: 4,
      users: { [ALICE]: 5 },
      users_default: 6,
      events: { 'x.a': 7 },
      state_default: 8,
      events_default: 9,
      notifications: { room: 10 },
    })
    expect(levels).toMatchObject({ ban: 1, kick: 2, redact: 3, invite: 4 })
    expect([levels.levelOf(ALICE), levels.levelOf(BOB)]).toEqual([5, 6])
    expect([levels.toSend('x.a', true), levels.toSend('x.b', true), levels.toSend('x.b', false)]).toEqual([7, 8, 9])
    expect([levels.toNotify('room'), levels.toNotify('other')]).toEqual([10, 50])
  })

  it('what is odd reads as absent, and inherited names as nothing', () => {
    const levels = read('10', { ban: '1', users: [ALICE], events: 'x', notifications: null, users_default: 1.5 })
    expect([levels.ban, levels.levelOf(ALICE), levels.toSend('x', false), levels.toNotify('room')]).toEqual([
      50, 0, 0, 50,
    ])
    expect(read('1', { users: {}, events: {} }).levelOf('constructor')).toBe(0)
    expect(read('1', { users: {}, events: {} }).toSend('toString', true)).toBe(50)
  })

  it('creators of version 12 cannot be lowered', () => {
    const levels = read('12', { users: { [CREATOR]: 0, [CAROL]: -1, [BOB]: 1 } }, { additional_creators: [CAROL] })
    expect([CREATOR, CAROL, BOB].map(levels.levelOf)).toEqual([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 1])
  })
})

describe('redactions taking effect (room version 3, handling redactions)', () => {
  const sent = (sender: string) => ({ sender: sender as typeof ALICE })
  const levels = read('10', { users: { [BOB]: 50 } })

  it.each(versions(3))('version %s: with the redact level, or within a server', (id) => {
    const may = (by: string, of: string) => mayRedact(versionOf(id), sent(by), sent(of), levels).allowed
    expect(may(BOB, ALICE)).toBe(true)
    expect(may(ALICE, CAROL)).toBe(true)
    expect(may(ALICE, BOB)).toBe(false)
  })

  it.each(versions(1, 2))('version %s: the authorisation rules have decided', (id) => {
    expect(mayRedact(versionOf(id), sent(ALICE), sent(BOB), levels).allowed).toBe(true)
  })

  it('users ask for their own events, or need the level', () => {
    expect(mayAskToRedact(ALICE, sent(ALICE), levels).allowed).toBe(true)
    expect(mayAskToRedact(BOB, sent(ALICE), levels).allowed).toBe(true)
    expect(mayAskToRedact(ALICE, sent(CAROL), levels)).toEqual({
      allowed: false,
      reason: `To redact what others sent takes power level 50; ${ALICE} has 0.`,
    })
  })
})
