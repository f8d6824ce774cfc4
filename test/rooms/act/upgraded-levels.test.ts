import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/core/json.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { closingLevels, levelsAfterUpgrade } from '../../../src/domain/rooms/act/upgrade/levels.ts'

const ALICE = '@alice:localhost'
const upgraded = (content: JsonObject, from: string, to: string) =>
  levelsAfterUpgrade(content, {
    from: roomVersion(from)!,
    to: roomVersion(to)!,
    creators: [ALICE],
    newCreators: [ALICE],
    others: content,
  })

describe('the power levels of a new room', () => {
  it('are integers, also where the old version allowed text and floats', () => {
    const users = { '@a:x': ' 50 ', '@b:x': 12.9, '@c:x': 'high', 'no user': 50 }
    const levels = upgraded({ users, ban: '60', kick: null, events: { 'm.x': '+07' }, notifications: 'all' }, '1', '11')
    expect(levels).toEqual({ users: { '@a:x': 50, '@b:x': 12 }, ban: 60, events: { 'm.x': 7 } })
  })

  it('are no greater than canonical JSON allows', () => {
    expect(upgraded({ ban: 2n ** 60n, kick: -(2n ** 60n) }, '1', '11')).toEqual({
      ban: Number.MAX_SAFE_INTEGER,
      kick: Number.MIN_SAFE_INTEGER,
      users: {},
    })
  })

  it('keep the level of a tombstone where creators stood above all before', () => {
    expect(upgraded({ events: { 'm.room.tombstone': 100 } }, '12', '12').events).toEqual({ 'm.room.tombstone': 100 })
    expect(upgraded({ events: { 'm.room.tombstone': 200 } }, '11', '12').events).toEqual({ 'm.room.tombstone': 200 })
    expect(upgraded({ users: { [ALICE]: 100 } }, '11', '12')).toEqual({
      users: {},
      events: { 'm.room.tombstone': 150 },
    })
  })
})

describe('the power levels that close a room', () => {
  const closed = (content: JsonObject) => closingLevels(roomVersion('11')!, content)

  it.each<[JsonObject, JsonObject | undefined]>([
    [{}, { events_default: 50, invite: 50 }],
    [{ users_default: 50 }, { users_default: 50, events_default: 51, invite: 51 }],
    [
      { users_default: -10, invite: 75 },
      { users_default: -10, invite: 75, events_default: 50 },
    ],
    [{ events_default: 50, invite: 50 }, undefined],
  ])('of %j are %j', (content, expected) => expect(closed(content)).toEqual(expected))

  it('leave the content they are made from as it is', () => {
    const content = Object.freeze({ users: Object.freeze({ [ALICE]: 100 }) })
    expect(closed(content)).toEqual({ users: { [ALICE]: 100 }, events_default: 50, invite: 50 })
    expect(content).toEqual({ users: { [ALICE]: 100 } })
  })
})
