import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Account, type Api, createRoom, openApi, register } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
let api: Api
let alice: Account

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
})

afterAll(async () => {
  await api.close()
  await server.close()
})

const stateOf = (room: string, type: string) =>
  api.call('GET', `/rooms/${encodeURIComponent(room)}/state/${type}`, { token: alice.token })

const defaultVersion = async () =>
  (await api.call('GET', '/capabilities', { token: alice.token })).capabilities['m.room_versions'].default

test('C1: a new room is version 11, and its power levels name who made it', async () => {
  const room = await createRoom(api, alice.token)
  expect(await stateOf(room, 'm.room.create')).toMatchObject({ room_version: '11' })
  expect(await stateOf(room, 'm.room.power_levels')).toMatchObject({ users: { [alice.userId]: 100 } })
  expect(await defaultVersion()).toBe('11')
})

test('C1: version 12 is one option away, for one room and for the server', async () => {
  const room = await createRoom(api, alice.token, { room_version: '12' })
  expect(await stateOf(room, 'm.room.create')).toMatchObject({ room_version: '12' })
  await server.restart({ rooms: { default_version: '12' } })
  expect(await stateOf(await createRoom(api, alice.token), 'm.room.create')).toMatchObject({ room_version: '12' })
  expect(await defaultVersion()).toBe('12')
})
