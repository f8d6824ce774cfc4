import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import type { Json } from '../../support/api.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

const redact = (by: Person, room: string, eventId: string, txn: string): Promise<Json> =>
  by.call('PUT', inRoom(room, `/redact/${encodeURIComponent(eventId)}/${txn}`), {})
const eventOf = (by: Person, room: string, eventId: string): Promise<Json> =>
  by.call('GET', inRoom(room, `/event/${encodeURIComponent(eventId)}`))

describe('a redaction', () => {
  it('is the first one, whoever redacts again, also after a restart', async () => {
    const room = await alice.createRoom()
    const said = await alice.say(room, 'secret')
    const { event_id: first } = await redact(alice, room, said, 'first')
    await redact(alice, room, said, 'second')
    expect((await eventOf(alice, room, said)).unsigned.redacted_because.event_id).toBe(first)
    await house.restart()
    expect((await eventOf(alice, room, said)).unsigned.redacted_because.event_id).toBe(first)
  })

  it('of two at once is the same before and after a restart', async () => {
    const room = await alice.createRoom()
    const said = await alice.say(room, 'secret')
    await Promise.all(Array.from({ length: 8 }, (_, i) => redact(alice, room, said, `at-once-${i}`)))
    const before = (await eventOf(alice, room, said)).unsigned.redacted_because.event_id
    await house.restart()
    expect((await eventOf(alice, room, said)).unsigned.redacted_because.event_id).toBe(before)
  })

  it('of state takes it from what came after, and from the directory', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', visibility: 'public' })
    const bad = await alice.setState(room, 'm.room.topic', { topic: 'Vile' })
    const directory = async () => JSON.stringify(await bob.call('GET', '/publicRooms'))
    expect(await directory()).toContain('Vile')
    await redact(alice, room, bad, 'topic')
    expect(await directory()).not.toContain('Vile')

    const worse = await alice.setState(room, 'm.room.name', { name: 'Viler' })
    const good = await alice.setState(room, 'm.room.name', { name: 'Good' })
    expect((await eventOf(alice, room, good)).unsigned.prev_content).toEqual({ name: 'Viler' })
    await redact(alice, room, worse, 'name')
    expect((await eventOf(alice, room, good)).unsigned.prev_content).toEqual({})
  })
})

test('B20: unsigned.redacted_by names the redaction, in every reader', async () => {
  const room = await alice.createRoom()
  const said = await alice.say(room, 'secret')
  const kept = await alice.say(room, 'kept')
  const { event_id: redaction } = await redact(alice, room, said, 'named')
  const { chunk } = await alice.call('GET', inRoom(room, '/messages?dir=b&limit=10'))
  const { rooms } = await alice.sync()
  for (const events of [chunk, rooms.join[room].timeline.events, [await eventOf(alice, room, said)]]) {
    const redacted = events.find(({ event_id }: Json) => event_id === said)
    expect(redacted.unsigned.redacted_by).toBe(redaction)
    expect(redacted.unsigned.redacted_because.event_id).toBe(redaction)
  }
  expect((await eventOf(alice, room, kept)).unsigned.redacted_by).toBeUndefined()
})
