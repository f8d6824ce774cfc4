import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MIN_ROOMS_OF_KEPT_ORDER } from '../../../src/domain/limits/sliding-sync.ts'
import { getRoomTypes, getRoomTypesOfUser, type RoomsOfType } from '../../../src/store/rooms/room-facts.ts'
import { getNewestEvents, getNewestEventsOfUser } from '../../../src/store/rooms/rooms.ts'
import { type House, openHouse, type Person } from '../../rooms/people.ts'
import { type Json, mapConcurrently } from '../../support/api.ts'
import { Connection, FORMS, type Request } from './connection.ts'

let house: House
let alice: Person
let bob: Person
/** The rooms as lists must show them: the newest activity first. */
let expected: string[] = []
let conn = 0

const touched = (room: string) => {
  expected = [room, ...expected.filter((other) => other !== room)]
}

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  const numbers = Array.from({ length: MIN_ROOMS_OF_KEPT_ORDER + 6 }, (_, index) => index)
  const made = await mapConcurrently(numbers, 8, (number) =>
    alice.createRoom({ preset: 'public_chat', ...(number % 5 === 0 && { creation_content: { type: 'm.space' } }) }),
  )
  for (const room of made) {
    await bob.join(room)
    touched(room)
  }
})
afterAll(() => house.close())

/** In the order in which ever larger windows show them: an answer holds rooms in no order. */
async function orderOf(person: Person, form: (typeof FORMS)[number], filters: Json = {}): Promise<string[]> {
  const client = new Connection(person, form, `order${++conn}`)
  const order: string[] = []
  for (let size = 1; size <= 8; size++) {
    const answer = await client.next({ lists: { all: { range: [0, size - 1], limit: 1, filters } } })
    order.push(...Object.keys(answer.rooms))
  }
  return order
}

it('finds the same for all rooms of a user as for rooms by their numbers', async () => {
  const { db } = house.server.database
  const rows = await db.query<{ room_nid: number; user_nid: number }>(
    `SELECT room_nid, user_nid FROM room_member JOIN matrix_user USING (user_nid) WHERE user_id = $1`,
    [bob.userId],
  )
  const nids = rows.map(({ room_nid }) => room_nid)
  const userNid = rows[0]!.user_nid
  const byRoom = (found: readonly { room_nid: number }[]) => found.toSorted((a, b) => a.room_nid - b.room_nid)
  expect(byRoom(await getNewestEventsOfUser(db, userNid))).toEqual(byRoom(await getNewestEvents(db, nids)))
  const types = (found: readonly RoomsOfType[]) =>
    found
      .flatMap(({ room_nids, create }) =>
        room_nids.split(',').map((nid) => `${nid} ${create?.includes('"m.space"') === true}`),
      )
      .sort()
  const some = types(await getRoomTypes(db, nids))
  expect(some.filter((text) => text.endsWith('true'))).toHaveLength(Math.ceil(nids.length / 5))
  expect(some).toHaveLength(nids.length)
  expect(types(await getRoomTypesOfUser(db, userNid))).toEqual(some)
})

describe.each(FORMS)('the order of an account in many rooms, in the %s form', (form) => {
  const WINDOW: Request = { lists: { all: { range: [0, 4], limit: 1 } } }

  it('follows messages, joins, leaves and invitations, as an order that is made anew does', async () => {
    const held = new Connection(bob, form, `held${++conn}`)
    await held.next(WINDOW)
    for (const place of [3, 60, 17, 17, 0, 64, 2]) {
      const room = expected[place]!
      await alice.say(room, `to the room at ${place}`)
      touched(room)
      const { rooms } = await held.next(WINDOW)
      expect(Object.keys(rooms)).toContain(room)
      expect(await orderOf(bob, form)).toEqual(expected.slice(0, 8))
    }
    const left = expected[1]!
    await bob.call('POST', `/rooms/${encodeURIComponent(left)}/leave`, {})
    expected = expected.filter((room) => room !== left)
    expect(await orderOf(bob, form)).toEqual(expected.slice(0, 8))
    const invited = await alice.createRoom({ preset: 'private_chat' })
    await alice.invite(invited, bob)
    touched(invited)
    expect(await orderOf(bob, form)).toEqual(expected.slice(0, 8))
    await alice.say(expected[5]!, 'above the invitation')
    touched(expected[5]!)
    expect(await orderOf(bob, form)).toEqual(expected.slice(0, 8))
    await bob.join(invited)
    touched(invited)
    expect(await orderOf(bob, form)).toEqual(expected.slice(0, 8))
    await bob.join(left)
    touched(left)
    expect(await orderOf(bob, form)).toEqual(expected.slice(0, 8))
  })

  it('is the same after many rooms had news at once, and after a restart', async () => {
    await orderOf(bob, form)
    const many = expected.slice(10)
    for (const room of many) {
      await alice.say(room, 'and again')
      touched(room)
    }
    expect(await orderOf(bob, form)).toEqual(expected.slice(0, 8))
    await house.restart()
    expect(await orderOf(bob, form)).toEqual(expected.slice(0, 8))
  })

  it('counts and shows rooms of types, also where it reads them for all rooms of the user', async () => {
    const spaces = await new Connection(bob, form, `s${++conn}`).next({
      lists: { spaces: { range: [0, 99], limit: 0, filters: { room_types: ['m.space'] } } },
    })
    const others = await new Connection(bob, form, `o${++conn}`).next({
      lists: { rooms: { range: [0, 99], limit: 0, filters: { not_room_types: ['m.space'] } } },
    })
    const shown = [...Object.keys(spaces.rooms), ...Object.keys(others.rooms)]
    expect(new Set(shown)).toEqual(new Set(expected))
    expect(spaces.lists.spaces.count + others.lists.rooms.count).toBe(expected.length)
    expect(spaces.lists.spaces.count).toBe(Math.ceil((MIN_ROOMS_OF_KEPT_ORDER + 6) / 5))
  })
})
