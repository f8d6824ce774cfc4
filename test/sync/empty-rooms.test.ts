import { afterAll, beforeAll, expect, test } from 'vitest'
import { type House, inRoom, openHouse, type Person, textsOf } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

const filterOf = (filter: object): string => `&filter=${encodeURIComponent(JSON.stringify(filter))}`
const TOPICS_ALONE = { room: { timeline: { types: ['m.room.topic'] } } }

async function sharedRoom(request: object = {}): Promise<string> {
  const room = await alice.createRoom({ preset: 'public_chat', ...request })
  await bob.join(room)
  return room
}

const typesOf = (events: readonly Json[]): string[] => events.map(({ type }) => type)
const receipt = (by: Person, room: string, kind: string, event: string): Promise<Json> =>
  by.call('POST', inRoom(room, `/receipt/${kind}/${encodeURIComponent(event)}`), {})

test('B20: a joined room of which a filter leaves nothing is left out of an incremental sync', async () => {
  const room = await sharedRoom()
  const { next_batch: since } = await bob.sync()
  await alice.say(room, 'not asked for')
  const answer = await bob.sync(`&since=${since}${filterOf(TOPICS_ALONE)}`)
  expect(answer.rooms).toBeUndefined()
  await alice.setState(room, 'm.room.topic', { topic: 'asked for' })
  const next = await bob.sync(`&since=${answer.next_batch}${filterOf(TOPICS_ALONE)}`)
  expect(typesOf(next.rooms.join[room].timeline.events)).toEqual(['m.room.topic'])
})

test('B20: an empty joined room is in a first sync, and in one that asks for the full state', async () => {
  const room = await sharedRoom()
  const nothing = filterOf({ room: { timeline: { types: [] }, state: { types: [] } } })
  const first = await bob.sync(nothing)
  expect(Object.keys(first.rooms.join)).toContain(room)
  const full = await bob.sync(`&since=${first.next_batch}&full_state=true${nothing}`)
  expect(Object.keys(full.rooms.join)).toContain(room)
})

test('B20: a filtered room does not wake a sync that waits, and what comes later does', async () => {
  const room = await sharedRoom()
  const { next_batch: since } = await bob.sync()
  const waiting = bob.call('GET', `/sync?timeout=20000&since=${since}${filterOf(TOPICS_ALONE)}`)
  await alice.say(room, 'one')
  await alice.say(room, 'two')
  await alice.setState(room, 'm.room.topic', { topic: 'three' })
  const { rooms } = await waiting
  expect(typesOf(rooms.join[room].timeline.events)).toEqual(['m.room.topic'])
})

test('B20: a room that a filter names as unwanted is left out of an incremental sync', async () => {
  const room = await sharedRoom()
  const { next_batch: since } = await bob.sync()
  await alice.say(room, 'hi')
  const answer = await bob.sync(`&since=${since}${filterOf({ room: { not_rooms: [room] } })}`)
  expect(answer.rooms).toBeUndefined()
})

test('B20: a room with receipts, account data or typing that filters leave out is left out', async () => {
  const room = await sharedRoom()
  const said = await alice.say(room, 'hi')
  const { next_batch: since } = await bob.sync()
  await receipt(alice, room, 'm.read', said)
  await alice.call('PUT', inRoom(room, `/typing/${encodeURIComponent(alice.userId)}`), {
    typing: true,
    timeout: 20_000,
  })
  await bob.call('PUT', `/user/${encodeURIComponent(bob.userId)}${inRoom(room, '/account_data/m.tag')}`, { tags: {} })
  const none = filterOf({ room: { ephemeral: { types: [] }, account_data: { types: [] } } })
  expect((await bob.sync(`&since=${since}${none}`)).rooms).toBeUndefined()
  const { ephemeral, account_data } = (await bob.sync(`&since=${since}`)).rooms.join[room]
  expect(typesOf(ephemeral.events).toSorted()).toEqual(['m.receipt', 'm.typing'])
  expect(typesOf(account_data.events)).toEqual(['m.tag'])
})

test('B20: a room in which the user read on is no empty one: its unread count comes without the receipt', async () => {
  const room = await sharedRoom()
  const said = await alice.say(room, 'hi')
  const first = await bob.sync()
  expect(first.rooms.join[room].unread_notifications.notification_count).toBe(1)
  await receipt(bob, room, 'm.read', said)
  const silent = filterOf({ room: { ephemeral: { types: [] } } })
  const { rooms } = await bob.sync(`&since=${first.next_batch}${silent}`)
  expect(rooms.join[room].ephemeral).toBeUndefined()
  expect(rooms.join[room].unread_notifications.notification_count).toBe(0)
})

test('B20: a gap that holds nothing wanted is still told', async () => {
  const room = await sharedRoom()
  const { next_batch: since } = await bob.sync()
  await alice.say(room, 'one')
  const { rooms } = await bob.sync(`&since=${since}${filterOf({ room: { timeline: { limit: 0 } } })}`)
  expect(rooms.join[room].timeline).toMatchObject({ events: [], limited: true })
})

test.each([
  ['rooms', (room: string, other: string) => ({ rooms: [other], expected: [other], room })],
  ['not_rooms', (room: string, other: string) => ({ not_rooms: [room], expected: [other], room })],
] as const)('B6: filter.room.state.%s chooses the rooms whose state is told', async (_name, wish) => {
  const room = await sharedRoom({ name: 'One' })
  const other = await sharedRoom({ name: 'Two' })
  const { expected, room: without, ...state } = wish(room, other)
  for (const lazy of [{}, { lazy_load_members: true }]) {
    const filter = filterOf({ room: { rooms: [room, other], timeline: { limit: 1 }, state: { ...state, ...lazy } } })
    const { rooms } = await bob.sync(filter)
    expect(rooms.join[without].state.events).toEqual([])
    for (const one of expected) expect(typesOf(rooms.join[one].state.events)).toContain('m.room.name')
    expect(rooms.join[without].timeline.events).toHaveLength(1)
  }
})

test('B6: filter.room.state.not_rooms holds in an incremental sync with a gap', async () => {
  const room = await sharedRoom({ name: 'Old' })
  const { next_batch: since } = await bob.sync()
  await alice.setState(room, 'm.room.name', { name: 'New' })
  for (const text of ['one', 'two']) await alice.say(room, text)
  const wish = { room: { timeline: { limit: 1 }, state: { not_rooms: [room] } } }
  const section = (await bob.sync(`&since=${since}${filterOf(wish)}`)).rooms.join[room]
  expect(section.state.events).toEqual([])
  expect(textsOf(section.timeline.events)).toEqual(['two'])
})
