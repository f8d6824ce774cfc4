import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RoomId, UserId } from '../../src/core/ids.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import type { EventCache } from '../../src/domain/rooms/room/event-cache.ts'
import { emptyRoom } from '../../src/domain/rooms/room/room.ts'
import { type House, openHouse, type Person } from '../rooms/people.ts'

/** Names of members are read only where somebody has a rule of their own. */
let house: House
let alice: Person
let bob: Person
let id: string

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  id = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(id)
})
afterAll(() => house.close())

const rename = (displayname: string): Promise<unknown> =>
  bob.call('PUT', `/profile/${encodeURIComponent(bob.userId)}/displayname`, { displayname })

async function highlights(): Promise<number> {
  return (await bob.sync()).rooms.join[id].unread_notifications.highlight_count
}

async function said(text: string): Promise<number> {
  const before = await highlights()
  await alice.say(id, text)
  return (await highlights()) - before
}

test('a rule for the own name knows it after a start, and after each change of it', async () => {
  await bob.call('PUT', '/pushrules/global/override/my.name', {
    conditions: [{ kind: 'contains_display_name' }],
    actions: ['notify', { set_tweak: 'highlight' }],
  })
  await rename('Bobby')
  expect([await said('for Bobby'), await said('for Robert')]).toEqual([1, 0])
  await house.restart()
  expect([await said('for Bobby'), await said('for Robert')]).toEqual([1, 0])
  await rename('Robert')
  expect([await said('for Bobby'), await said('for Robert')]).toEqual([0, 1])
  await house.restart()
  await rename('Rob')
  expect([await said('for Robert'), await said('for Rob')]).toEqual([0, 1])
  await house.restart()
  expect([await said('for Robert'), await said('for Rob')]).toEqual([0, 1])
})

test('who changes while names are read keeps the newer name', () => {
  const room = emptyRoom({ nid: 1, id: '!a:b' as RoomId, version: roomVersion('11')!, events: {} as EventCache })
  const [ann, ben] = [1, 2].map((userNid) => ({
    userNid,
    userId: `@${userNid}:b` as UserId,
    isLocal: true,
    eventNid: 1,
    changedAt: 1,
  }))
  const joined = { before: undefined, after: 'join' } as const
  room.recordMember({ ...ann!, ...joined, displayName: undefined })
  room.recordMember({ ...ben!, ...joined, displayName: undefined })
  room.lacksNames = true
  const before = new Map(room.localMembers)
  room.recordMember({ ...ben!, before: 'join', after: 'join', displayName: 'Newer' })
  room.nameMembers(
    new Map([
      [1, 'Ann'],
      [2, 'Older'],
      [3, 'Gone'],
    ]),
    before,
  )
  expect([...room.localMembers.values()].map(({ displayName }) => displayName)).toEqual(['Ann', 'Newer'])
  expect(room.lacksNames).toBe(false)
})
