import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Account, Json } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { waitUntil } from '../support/wait.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let alice: Account
let bob: Account

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
})

afterAll(() => street.close())

const enc = encodeURIComponent
const join = (room: string) =>
  beta.api.call('POST', `/join/${enc(room)}?server_name=${enc(alpha.name)}`, { token: bob.token, body: {} })

async function stateAt({ api }: Neighbour, { token }: Account, room: string, type: string): Promise<Json> {
  const { status, body } = await api.request('GET', `/rooms/${enc(room)}/state/${type}`, { token })
  return status === 200 ? body : undefined
}

it.each(['11', '12'])('a room that is upgraded to version %s is followed from another server', async (version) => {
  const body = { preset: 'public_chat', room_version: '10', name: 'Shared' }
  const room: string = (await alpha.api.call('POST', '/createRoom', { token: alice.token, body })).room_id
  await join(room)
  const own = `/user/${enc(bob.userId)}/rooms`
  const tags = { tags: { 'm.favourite': {} } }
  await beta.api.call('PUT', `${own}/${enc(room)}/account_data/m.tag`, { token: bob.token, body: tags })
  const upgrade = { new_version: version }
  const answer = await alpha.api.call('POST', `/rooms/${enc(room)}/upgrade`, { token: alice.token, body: upgrade })
  const next: string = answer.replacement_room
  const tombstone = await waitUntil('the tombstone', () => stateAt(beta, bob, room, 'm.room.tombstone'))
  expect(tombstone.replacement_room).toBe(next)
  const levels = await waitUntil('the power levels', async () => {
    const content = await stateAt(beta, bob, room, 'm.room.power_levels')
    return content.events_default === 50 && content
  })
  expect(levels.invite).toBe(50)
  await join(next)
  expect(await stateAt(beta, bob, next, 'm.room.name')).toEqual({ name: 'Shared' })
  expect((await stateAt(beta, bob, next, 'm.room.create')).predecessor.room_id).toBe(room)
  const path = `${own}/${enc(next)}/account_data/m.tag`
  expect(await beta.api.call('GET', path, { token: bob.token })).toEqual(tags)
})
