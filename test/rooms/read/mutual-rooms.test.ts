import { afterAll, beforeAll, expect, it } from 'vitest'
import { MUTUAL_ROOMS_PER_PAGE } from '../../../src/domain/limits/mutual-rooms.ts'
import { type House, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person
let bob: Person

const STABLE = '/_matrix/client/v1/mutual_rooms'
const UNSTABLE = '/_matrix/client/unstable/uk.half-shot.msc2666/user/mutual_rooms'
const withUser = (id: string, rest = '', path = STABLE) => `${path}?user_id=${encodeURIComponent(id)}${rest}`

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

it('lists the rooms that both are joined to, and no others', async () => {
  const rooms = [await alice.createRoom({ preset: 'public_chat' }), await bob.createRoom({ preset: 'public_chat' })]
  await alice.join(rooms[1]!)
  await bob.join(rooms[0]!)
  await alice.createRoom({ preset: 'public_chat' })
  await bob.createRoom({ preset: 'public_chat', invite: [alice.userId] })
  const left = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(left)
  await bob.leave(left)
  const shared = { joined: rooms.toSorted(), count: 2 }
  expect(await alice.call('GET', withUser(bob.userId))).toEqual(shared)
  expect(await bob.call('GET', withUser(alice.userId, '', UNSTABLE))).toEqual(shared)
  await alice.leave(rooms[0]!)
  expect(await alice.call('GET', withUser(bob.userId))).toEqual({ joined: [rooms[1]], count: 1 })
})

it('is empty for a user whom nobody knows', async () => {
  for (const id of ['@nobody:localhost', '@nobody:elsewhere.example', '@Old~Name:elsewhere.example']) {
    expect(await alice.call('GET', withUser(id))).toEqual({ joined: [], count: 0 })
  }
})

it('refuses oneself, what is no user id, and what is no token', async () => {
  const invalid = { status: 400, body: { errcode: 'M_INVALID_PARAM' } }
  for (const id of [alice.userId, '', 'bob', '@bob', '@:localhost', '@ö:localhost', '@\0:localhost', '!r:localhost']) {
    expect(await alice.ask('GET', withUser(id))).toMatchObject(invalid)
  }
  for (const from of ['x', '%00', '@bob:localhost']) {
    expect(await alice.ask('GET', withUser(bob.userId, `&from=${from}`))).toMatchObject(invalid)
  }
  expect(await alice.ask('GET', STABLE)).toMatchObject({ status: 400, body: { errcode: 'M_MISSING_PARAM' } })
})

it('goes by pages in the order of the ids', async () => {
  const [carol, dave] = [await house.person('carol'), await house.person('dave')]
  const all = MUTUAL_ROOMS_PER_PAGE * 2
  await house.server.database.db.tx(async (tx) => {
    await tx.query(
      `WITH made AS (
         INSERT INTO room (room_nid, room_id, room_version, head_version, extremities, depth, last_pos, last_nid, notifiable,
           state_chain, state_seq)
         SELECT 1000000 + n, '!page-' || lpad(n::text, 4, '0') || ':localhost', '12', 1, '{}', 1, 1, 1, 1, 1, 1 FROM generate_series(1, $1::int) AS n
         RETURNING room_nid
       )
       INSERT INTO room_member (user_nid, room_nid, membership, event_nid)
       SELECT user_nid, room_nid, 'join', 0 FROM made, matrix_user WHERE user_id IN ($2, $3)`,
      [all, carol.userId, dave.userId],
    )
  })
  const first = await carol.call('GET', withUser(dave.userId))
  expect(first).toMatchObject({ count: all, next_batch: '!page-0100:localhost' })
  expect(first.joined).toHaveLength(MUTUAL_ROOMS_PER_PAGE)
  const second = await carol.call('GET', withUser(dave.userId, `&from=${encodeURIComponent(first.next_batch)}`))
  expect(second).toEqual({ joined: expect.any(Array), count: all })
  expect([...first.joined, ...second.joined]).toEqual([...first.joined, ...second.joined].toSorted())
  expect(new Set([...first.joined, ...second.joined]).size).toBe(all)
})
