import { afterAll, beforeAll, expect, it } from 'vitest'
import { createRoom, openApi, register } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.close())

/** What clients from before release 1.1 call, once they have seen the name of the feature in `versions`. */
const OLD: readonly [feature: string, method: string, path: string, body?: object][] = [
  ['org.matrix.e2e_cross_signing', 'POST', '/keys/device_signing/upload', {}],
  ['org.matrix.e2e_cross_signing', 'POST', '/keys/signatures/upload', {}],
  ['org.matrix.msc2432', 'GET', '/org.matrix.msc2432/rooms/{room}/aliases'],
  ['(no feature)', 'PUT', '/sendToDevice/m.new_device/1', { messages: {} }],
  ['(no feature)', 'POST', '/keys/upload', {}],
  ['(no feature)', 'POST', '/keys/query', { device_keys: {} }],
  ['(no feature)', 'POST', '/keys/claim', { one_time_keys: {} }],
  ['(no feature)', 'GET', '/room_keys/version'],
  ['(no feature)', 'PUT', '/room_keys/keys?version=1', { rooms: {} }],
]

it.each(OLD)('%s: %s client/unstable%s is understood', async (feature, method, path, body) => {
  const api = openApi(server.baseUrl)
  const { token } = await register(api, `user-${OLD.findIndex((row) => row[2] === path)}`)
  const room = encodeURIComponent(await createRoom(api, token))
  const { unstable_features } = await api.call('GET', '/_matrix/client/versions')
  if (feature.startsWith('org.')) expect(unstable_features[feature]).toBe(true)
  const old = `/_matrix/client/unstable${path.replace('{room}', room)}`
  const answer = await api.request(method, old, { token, ...(body && { body }) })
  expect(answer.status).toBeLessThan(500)
  expect(answer.body.errcode).not.toBe('M_UNRECOGNIZED')
  await api.close()
})
