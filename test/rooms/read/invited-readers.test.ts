import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Json } from '../../support/api.ts'
import { type House, inRoom, openHouse, type Person, textsOf } from '../people.ts'

let house: House
let host: Person
let guest: Person

beforeAll(async () => {
  house = await openHouse()
  host = await house.person('host')
  guest = await house.person('guest')
})
afterAll(() => house.close())

/** A room in which a topic was set before an invitation, and something was said after it. */
async function play(visibility: string) {
  const room = await host.createRoom({
    preset: 'public_chat',
    topic: 'before the invitation',
    initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: visibility } }],
  })
  await host.say(room, 'early')
  await host.invite(room, guest)
  const later = await host.say(room, 'late')
  const named = await host.setState(room, 'm.room.name', { name: 'after the invitation' })
  return { room, later, named }
}

const typesOf = (events: Json[]): string[] => events.map(({ type }) => type)

test.each(['shared', 'invited', 'joined'])('B15: an invited user pages through no %s history', async (visibility) => {
  const { room } = await play(visibility)
  for (const dir of ['b', 'f']) {
    const { status, body } = await guest.ask('GET', inRoom(room, `/messages?dir=${dir}`))
    expect([status, body.errcode]).toEqual([403, 'M_FORBIDDEN'])
  }
  await guest.join(room)
  expect((await guest.ask('GET', inRoom(room, '/messages?dir=b'))).status).toBe(200)
})

test('B15: an invited user pages through history that is open to the world', async () => {
  const { room } = await play('world_readable')
  const { chunk } = await guest.call('GET', inRoom(room, '/messages?dir=b&limit=50'))
  expect(textsOf(chunk)).toEqual(['late', 'early'])
})

test('B15: the context of an event gives an invited user no state from before the invitation', async () => {
  const { room, later } = await play('invited')
  const { state, events_before } = await guest.call('GET', inRoom(room, `/context/${encodeURIComponent(later)}`))
  expect(textsOf(events_before)).toEqual([])
  expect(typesOf(state)).toContain('m.room.name')
  expect(typesOf(state)).not.toContain('m.room.topic')
  expect(typesOf(state)).not.toContain('m.room.create')
  const members = state.filter(({ type }: Json) => type === 'm.room.member')
  expect(members.map(({ state_key }: Json) => state_key)).toEqual([guest.userId])
})

test('B15: the context of an event gives all state to who is in the room, or where the world may read it', async () => {
  const open = await play('world_readable')
  const shown = await guest.call('GET', inRoom(open.room, `/context/${encodeURIComponent(open.later)}`))
  expect(typesOf(shown.state)).toContain('m.room.topic')
  const closed = await play('invited')
  await guest.join(closed.room)
  const joined = await guest.call('GET', inRoom(closed.room, `/context/${encodeURIComponent(closed.later)}`))
  expect(typesOf(joined.state)).toContain('m.room.topic')
})

test('B15: there are no members before the create event', async () => {
  const room = await host.createRoom({ preset: 'public_chat' })
  const { end } = await host.call('GET', inRoom(room, '/messages?dir=f&limit=1'))
  const first = await host.call('GET', inRoom(room, `/messages?dir=b&limit=1&from=${end}`))
  const { start } = await host.call('GET', inRoom(room, '/messages?dir=f&limit=1'))
  const { chunk } = await host.call('GET', inRoom(room, `/members?at=${start}`))
  expect(chunk).toEqual([])
  expect(typesOf(first.chunk)).toEqual(['m.room.create'])
  const after = await host.call('GET', inRoom(room, '/members'))
  expect(after.chunk).toHaveLength(1)
})
