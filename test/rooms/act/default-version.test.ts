import { afterAll, beforeAll, expect, test } from 'vitest'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
})
afterAll(() => house.close())

const stateOf = (room: string, type: string) => alice.call('GET', inRoom(room, `/state/${type}`))
const defaultVersion = async () => (await alice.call('GET', '/capabilities')).capabilities['m.room_versions'].default

test('C1: a new room is version 11, and its power levels name who made it', async () => {
  const room = await alice.createRoom()
  expect(await stateOf(room, 'm.room.create')).toMatchObject({ room_version: '11' })
  expect(await stateOf(room, 'm.room.power_levels')).toMatchObject({ users: { [alice.userId]: 100 } })
  expect(await defaultVersion()).toBe('11')
})

test('C1: version 12 is one option away, for one room and for the server', async () => {
  const room = await alice.createRoom({ room_version: '12' })
  expect(await stateOf(room, 'm.room.create')).toMatchObject({ room_version: '12' })
  await house.server.restart({ rooms: { default_version: '12' } })
  expect(await stateOf(await alice.createRoom(), 'm.room.create')).toMatchObject({ room_version: '12' })
  expect(await defaultVersion()).toBe('12')
})
