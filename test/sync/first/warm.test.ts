import { afterAll, beforeAll, expect, it } from 'vitest'
import { type House, openHouse, type Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'

/** More than fit into a small read: 5 rooms of up to 60 events each. */
const ROOMS = 5
const LIMIT = 60

let house: House
let people: Person[]

beforeAll(async () => {
  house = await openHouse()
  people = []
  for (const name of ['alice', 'bob', 'carol']) people.push(await house.person(name))
  const [alice, ...others] = people as [Person, ...Person[]]
  for (let number = 0; number < ROOMS; number++) {
    const room = await alice.createRoom({ preset: 'public_chat', name: `Room ${number}` })
    for (const person of others) await person.join(room)
    await alice.setState(room, 'org.example.colour', { is: number }, 'door')
    // In some rooms the state is older than the timeline, in others part of it.
    for (let count = 0; count < 10 * number; count++) await alice.say(room, `text ${count} of ${number}`)
    await alice.setState(room, 'm.room.topic', { topic: `About ${number}` })
    await others[0]!.say(room, 'last')
  }
})
afterAll(() => house.close())

const without = (event: Json): Json => ({ ...event, unsigned: { ...event.unsigned, age: 0 } })

/** What a first sync shows of the rooms, but for the age of events. */
async function firstSync(person: Person, filter: object): Promise<Json> {
  const { rooms } = await person.call('GET', `/sync?timeout=0&filter=${encodeURIComponent(JSON.stringify(filter))}`)
  const shown = Object.entries<Json>(rooms.join).map(([room, { timeline, state, summary, unread_notifications }]) => [
    room,
    { timeline: timeline.events.map(without), state: state.events.map(without), summary, unread_notifications },
  ])
  return Object.fromEntries(shown)
}

it.each([
  ['members lazily', { room: { timeline: { limit: LIMIT }, state: { lazy_load_members: true } } }],
  ['all state', { room: { timeline: { limit: LIMIT } } }],
  ['some state', { room: { timeline: { limit: LIMIT }, state: { types: ['org.example.*'] } } }],
])('shows after a start what it showed before: %s', async (_, filter) => {
  const before = await firstSync(people[2]!, filter)
  expect(Object.keys(before)).toHaveLength(ROOMS)
  const counts = Object.values<Json>(before).map(({ timeline }) => timeline.length)
  expect(Math.max(...counts)).toBeGreaterThan(40)
  await house.restart()
  expect(await firstSync(people[2]!, filter)).toEqual(before)
})

it('does not read rooms that the filter leaves out', async () => {
  const alice = people[0]!
  const all = await firstSync(alice, { room: { timeline: { limit: LIMIT } } })
  const [named, other] = Object.keys(all) as [string, string]
  const filter = {
    room: { timeline: { limit: LIMIT }, rooms: [named, other, '!nowhere:example.org'], not_rooms: [other] },
  }
  const { db } = house.server.database
  const versions = await db.query<{ room_id: string; room_version: string }>('SELECT room_id, room_version FROM room')
  // Whoever reads one of these fails.
  await db.query(`UPDATE room SET room_version = 'none' WHERE room_id <> ALL ($1::text[])`, [[named, other]])
  try {
    await house.restart()
    expect(await firstSync(alice, filter)).toEqual({ [named]: all[named] })
  } finally {
    for (const { room_id, room_version } of versions)
      await db.query('UPDATE room SET room_version = $2 WHERE room_id = $1', [room_id, room_version])
  }
})
