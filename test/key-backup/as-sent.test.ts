import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Api, openApi } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { ALGORITHM, keysPath, newKey, newOwner, type Owner, ROOM } from './backups.ts'

let server: TestServer
let api: Api
let alice: Owner

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  alice = await newOwner(api, 'alice')
})
afterAll(async () => {
  await api.close()
  await server.close()
})

const SENT = [
  ['an object', { z: 1, a: { é: [1.5, null] } }],
  ['text', 'eyJ0ZXh0IjoidHJ1ZSJ9'],
  ['text with what JSON escapes', '"\\ \n \u0000 é'],
  ['empty text', ''],
] as const

test.each(SENT)('B19: auth_data of a key backup is kept as sent, being %s', async (_, sent) => {
  const { version } = await alice.call('POST', '/room_keys/version', { algorithm: ALGORITHM, auth_data: sent })
  expect((await alice.call('GET', '/room_keys/version')).auth_data).toEqual(sent)
  await alice.call('PUT', `/room_keys/version/${version}`, { algorithm: ALGORITHM, auth_data: sent, version })
  expect((await alice.call('GET', `/room_keys/version/${version}`)).auth_data).toEqual(sent)
})

test.each(SENT)('B19: session_data of a key backup is kept as sent, being %s', async (_, sent) => {
  const version = await alice.backup()
  await alice.call('PUT', keysPath(version, ROOM, 'session'), newKey({ session_data: sent }))
  expect((await alice.call('GET', keysPath(version, ROOM, 'session'))).session_data).toEqual(sent)
  const { rooms } = await alice.call('GET', keysPath(version))
  expect(rooms[ROOM].sessions.session.session_data).toEqual(sent)
})

test.each([
  ['an object', { D: true }],
  ['text', 'D'],
  ['a number', 1],
  ['true', true],
])('B19: keys/query with %s where a list is due is 400', async (_, ids) => {
  const answer = await alice.ask('POST', '/keys/query', { device_keys: { [alice.userId]: ids } })
  expect([answer.status, answer.body.errcode]).toEqual([400, 'M_BAD_JSON'])
})

test('B19: keys/query with an empty object or null asks for all devices, as with an empty list', async () => {
  const of = async (ids: unknown) =>
    (await alice.call('POST', '/keys/query', { device_keys: { [alice.userId]: ids } })).device_keys
  expect(await of({})).toEqual(await of([]))
  expect(await of(null)).toEqual(await of([]))
})
