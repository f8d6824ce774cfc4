import { afterAll, beforeAll, expect, test } from 'vitest'
import { type House, inRoom, openHouse, type Person } from '../rooms/people.ts'
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

const ALL = `&filter=${encodeURIComponent(JSON.stringify({ room: { timeline: { limit: 100 } } }))}`

/** The reader's membership at what was said and at their own membership events, by the texts and memberships. */
function membershipsIn(events: readonly Json[], reader: Person): Record<string, string> {
  const named = events.flatMap(({ type, state_key, content, unsigned }): [string, string][] => {
    if (type === 'm.room.message') return [[content.body, unsigned.membership]]
    return state_key === reader.userId ? [[`own ${content.membership}`, unsigned.membership]] : []
  })
  return Object.fromEntries(named)
}

async function readIn(room: string, reader: Person): Promise<Record<string, Json[]>> {
  const { rooms } = await reader.sync(ALL)
  const { chunk } = await reader.call('GET', inRoom(room, '/messages?dir=b&limit=100'))
  const last = chunk[0].event_id
  const context = await reader.call('GET', inRoom(room, `/context/${encodeURIComponent(last)}?limit=100`))
  return {
    sync: rooms.join[room].timeline.events,
    messages: chunk.toReversed(),
    context: [...context.events_before.toReversed(), context.event, ...context.events_after],
  }
}

test('B20: unsigned.membership is the reader`s own at each event, before and after they came', async () => {
  const room = await alice.createRoom({ preset: 'public_chat' })
  await alice.say(room, 'before')
  await bob.join(room)
  await alice.say(room, 'after')
  for (const [reader, events] of Object.entries(await readIn(room, bob))) {
    expect(membershipsIn(events, bob), reader).toEqual({ before: 'leave', 'own join': 'join', after: 'join' })
  }
  for (const [reader, events] of Object.entries(await readIn(room, alice))) {
    expect(membershipsIn(events, alice), reader).toMatchObject({ before: 'join', after: 'join' })
  }
})

test('B20: unsigned.membership follows an invitation and who comes and goes', async () => {
  const room = await alice.createRoom({ preset: 'public_chat' })
  await alice.say(room, 'strange')
  await alice.invite(room, bob)
  await alice.say(room, 'invited')
  await bob.join(room)
  const invited = { strange: 'leave', 'own invite': 'invite', invited: 'invite', 'own join': 'join' }
  for (const events of Object.values(await readIn(room, bob))) expect(membershipsIn(events, bob)).toEqual(invited)
  await bob.leave(room)
  await alice.say(room, 'away')
  await bob.join(room)
  await alice.say(room, 'back')
  const all = { ...invited, 'own leave': 'leave', away: 'leave', back: 'join' }
  for (const events of Object.values(await readIn(room, bob))) expect(membershipsIn(events, bob)).toEqual(all)
})

test('B20: unsigned.membership is told in an incremental sync, to all who wait in the room, and in a left room', async () => {
  const carol = await house.person('carol')
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  const since = new Map<Person, string>()
  for (const person of [alice, bob, carol]) since.set(person, (await person.sync()).next_batch)
  await alice.say(room, 'one')
  await carol.join(room)
  await alice.say(room, 'two')
  const read = async (person: Person): Promise<Json[]> =>
    (await person.sync(`&since=${since.get(person)}`)).rooms.join[room].timeline.events
  expect(membershipsIn(await read(bob), bob)).toEqual({ one: 'join', two: 'join' })
  expect(membershipsIn(await read(carol), carol)).toEqual({ one: 'leave', 'own join': 'join', two: 'join' })
  expect(membershipsIn(await read(bob), bob)).toEqual({ one: 'join', two: 'join' })
  await carol.leave(room)
  const left = (await carol.sync(`&since=${since.get(carol)}`)).rooms.leave[room].timeline.events
  expect(membershipsIn(left, carol)).toMatchObject({ two: 'join', 'own leave': 'leave' })
})

test('B20: unsigned.membership is on a single event, and on one that a filter cut down', async () => {
  const room = await alice.createRoom({ preset: 'public_chat' })
  const early = await alice.say(room, 'early')
  await bob.join(room)
  const late = await alice.say(room, 'late')
  const one = (event: string): Promise<Json> => bob.call('GET', inRoom(room, `/event/${encodeURIComponent(event)}`))
  expect((await one(early)).unsigned.membership).toBe('leave')
  expect((await one(late)).unsigned.membership).toBe('join')
  const fields = encodeURIComponent(
    JSON.stringify({ event_fields: ['unsigned.membership'], room: { rooms: [room], timeline: { limit: 1 } } }),
  )
  const { rooms } = await bob.sync(`&filter=${fields}`)
  expect(rooms.join[room].timeline.events).toEqual([{ unsigned: { membership: 'join' } }])
})
