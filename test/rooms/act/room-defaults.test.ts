import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Account, type Api, createRoom, openApi, register } from '../../support/api.ts'
import { startServer, type TestServer } from '../../support/server.ts'

const KEY = 'a'.repeat(43)

let server: TestServer
let api: Api
let alice: Account

beforeAll(async () => {
  const policy_server = { via: 'policy.example.org', public_key: KEY }
  server = await startServer({ rooms: { encryption: 'private', policy_server } })
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
})

afterAll(async () => {
  await api.close()
  await server.close()
})

const stateOf = async (room: string, type: string) =>
  (await api.request('GET', `/rooms/${encodeURIComponent(room)}/state/${type}`, { token: alice.token })).body

test('a new room is encrypted and has a policy server where the operator wants that', async () => {
  const own = await createRoom(api, alice.token)
  expect(await stateOf(own, 'm.room.encryption')).toEqual({ algorithm: 'm.megolm.v1.aes-sha2' })
  expect(await stateOf(own, 'm.room.policy')).toEqual({ via: 'policy.example.org', public_keys: { ed25519: KEY } })
  const open = await createRoom(api, alice.token, { preset: 'public_chat' })
  expect((await stateOf(open, 'm.room.encryption')).errcode).toBe('M_NOT_FOUND')
  expect((await stateOf(open, 'm.room.policy')).via).toBe('policy.example.org')
})

test('what the request says stands', async () => {
  const content = { via: 'other.example.org', public_keys: { ed25519: KEY } }
  const room = await createRoom(api, alice.token, {
    initial_state: [{ type: 'm.room.policy', state_key: '', content }],
  })
  expect((await stateOf(room, 'm.room.policy')).via).toBe('other.example.org')
})

test('all rooms are encrypted if that is wanted', async () => {
  await server.restart({ rooms: { encryption: 'all' } })
  const open = await createRoom(api, alice.token, { preset: 'public_chat' })
  expect((await stateOf(open, 'm.room.encryption')).algorithm).toBe('m.megolm.v1.aes-sha2')
})
