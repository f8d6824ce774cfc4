import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Json } from '../../support/api.ts'
import { type House, inRoom, openHouse, type Person, textsOf } from '../people.ts'

let house: House
let alice: Person
let bob: Person
let sent = 0

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

const filterOf = (filter: object): string => `&filter=${encodeURIComponent(JSON.stringify(filter))}`

async function relate(by: Person, room: string, target: string, relType: string, type = 'm.room.message') {
  const relation = { rel_type: relType, event_id: target, key: 'x' }
  const body = { msgtype: 'm.text', body: `about ${relType}`, 'm.relates_to': relation }
  const { event_id } = await by.call('PUT', inRoom(room, `/send/${type}/relate-${++sent}`), body)
  return event_id as string
}

/** A room with a thread that bob began, one that alice began, a reaction, and much that nothing relates to. */
async function talk(): Promise<{ room: string; reaction: string; threaded: string }> {
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  const [bobs, alices, liked] = [
    await alice.say(room, 'thread of bob'),
    await alice.say(room, 'thread of alice'),
    await bob.say(room, 'liked'),
  ]
  await alice.say(room, 'alone')
  await relate(bob, room, bobs, 'm.thread')
  await relate(alice, room, alices, 'm.thread')
  const reaction = await relate(bob, room, liked, 'm.annotation', 'm.reaction')
  for (let i = 0; i < 20; i++) await alice.say(room, `noise ${i}`)
  return { room, reaction, threaded: bobs }
}

const WISHES = [
  ['related_by_rel_types', () => ({ related_by_rel_types: ['m.thread'] }), ['thread of bob', 'thread of alice']],
  ['related_by_senders', () => ({ related_by_senders: [bob.userId] }), ['thread of bob', 'liked']],
  [
    'related_by_rel_types and related_by_senders of one and the same relation',
    () => ({ related_by_rel_types: ['m.thread'], related_by_senders: [bob.userId] }),
    ['thread of bob'],
  ],
] as const

test.each(WISHES)('B6: messages honours %s', async (_name, wish, expected) => {
  const { room } = await talk()
  const found: string[] = []
  for (let from: string | undefined, pages = 0; pages < 10; pages++) {
    const at = from === undefined ? '' : `&from=${from}`
    const page: Json = await alice.call('GET', inRoom(room, `/messages?dir=b&limit=1${at}${filterOf(wish())}`))
    found.push(...textsOf(page.chunk))
    from = page.end
    if (from === undefined) break
  }
  expect(found.toReversed()).toEqual(expected)
})

test.each(WISHES)('B6: a sync honours %s in filter.room.timeline', async (_name, wish, expected) => {
  const { next_batch: since } = await alice.sync()
  const { room } = await talk()
  for (const token of ['', `&since=${since}`]) {
    const { rooms } = await alice.sync(`${token}${filterOf({ room: { rooms: [room], timeline: wish() } })}`)
    const { timeline } = rooms.join[room]
    expect(textsOf(timeline.events)).toEqual(expected)
    expect(timeline.limited).toBe(false)
  }
})

test('B6: a sync that asks for fewer related events than there are is limited', async () => {
  const { room } = await talk()
  const wish = { related_by_rel_types: ['m.thread'], limit: 1 }
  const { rooms } = await alice.sync(filterOf({ room: { rooms: [room], timeline: wish } }))
  expect(textsOf(rooms.join[room].timeline.events)).toEqual(['thread of alice'])
  expect(rooms.join[room].timeline.limited).toBe(true)
})

test('B6: the context of an event honours related_by_rel_types', async () => {
  const { room, threaded } = await talk()
  const wish = filterOf({ related_by_rel_types: ['m.thread'] })
  const context = await alice.call('GET', inRoom(room, `/context/${encodeURIComponent(threaded)}?limit=20${wish}`))
  expect(textsOf(context.events_before)).toEqual([])
  expect(textsOf(context.events_after)).toEqual(['thread of alice'])
  expect(context.state).toEqual([])
})

test('B6: filter.room.state honours related_by_senders', async () => {
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  const topic = await alice.setState(room, 'm.room.topic', { topic: 'liked' })
  await relate(bob, room, topic, 'm.annotation', 'm.reaction')
  for (const text of ['one', 'two']) await alice.say(room, text)
  const wish = { state: { related_by_senders: [bob.userId] }, timeline: { limit: 1 } }
  const { rooms } = await alice.sync(filterOf({ room: { rooms: [room], ...wish } }))
  expect(rooms.join[room].state.events.map(({ type }: Json) => type)).toEqual(['m.room.topic'])
})

test('B6: a relation that was redacted is none, and neither is one that the reader may not see', async () => {
  const { room, reaction } = await talk()
  const wish = filterOf({ related_by_rel_types: ['m.annotation', 'm.reference'] })
  const found = async (reader: Person): Promise<string[]> =>
    textsOf((await reader.call('GET', inRoom(room, `/messages?dir=b${wish}`))).chunk)
  expect(await found(alice)).toEqual(['liked'])
  await alice.call('PUT', inRoom(room, `/redact/${encodeURIComponent(reaction)}/unlike`), {})
  expect(await found(alice)).toEqual([])
  const last = await alice.say(room, 'last')
  await bob.leave(room)
  await relate(alice, room, last, 'm.reference')
  expect(await found(alice)).toEqual(['last'])
  expect(await found(bob)).toEqual([])
})

test('B6: empty lists of relations ask for nothing', async () => {
  const { room } = await talk()
  const wish = filterOf({ related_by_rel_types: [], related_by_senders: [] })
  const { chunk } = await alice.call('GET', inRoom(room, `/messages?dir=b&limit=2${wish}`))
  expect(textsOf(chunk)).toEqual(['noise 19', 'noise 18'])
})
