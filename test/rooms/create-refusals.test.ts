import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Account, type Api, type Json, openApi, register } from '../support/api.ts'
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

describe('createRoom (seed 2, Errors)', () => {
  const member = { type: 'm.room.member', state_key: '@alice:localhost', content: { membership: 'join' } }
  const create = { type: 'm.room.create', state_key: '', content: {} }
  const refused: [name: string, body: Json, errcode: string][] = [
    ['a version that is none', { room_version: 'nonsense' }, 'M_UNSUPPORTED_ROOM_VERSION'],
    ['a version to come', { room_version: '99' }, 'M_UNSUPPORTED_ROOM_VERSION'],
    ['a membership in initial_state', { initial_state: [member] }, 'M_INVALID_ROOM_STATE'],
    ['a second create event', { initial_state: [create] }, 'M_INVALID_ROOM_STATE'],
  ]
  it.each(refused)('refuses %s', async (_name, body, errcode) => {
    const answer = await api.request('POST', '/createRoom', { token: alice.token, body })
    expect(answer).toMatchObject({ status: 400, body: { errcode, error: expect.any(String) } })
    expect(await api.call('GET', '/joined_rooms', { token: alice.token })).toEqual({ joined_rooms: [] })
  })

  it('refuses an alias that is taken', async () => {
    const body = { room_alias_name: 'taken' }
    await api.call('POST', '/createRoom', { token: alice.token, body })
    const answer = await api.request('POST', '/createRoom', { token: alice.token, body })
    expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_ROOM_IN_USE' } })
  })
})
