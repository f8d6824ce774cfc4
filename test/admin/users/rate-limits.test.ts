import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Account, createRoom } from '../../support/api.ts'
import { type Office, openOffice } from '../office.ts'

let office: Office
let alice: Account
let room: string
beforeAll(async () => {
  office = await openOffice({ rate_limits: { enabled: true, message: { per_second: 0.001, burst: 3 } } })
  alice = await office.person('alice')
  room = await createRoom(office.api, alice.token)
})
afterAll(() => office.close())

let sent = 0
const send = async () => {
  const path = `/rooms/${encodeURIComponent(room)}/send/m.room.message/${sent++}`
  return (await office.api.request('PUT', path, { token: alice.token, body: { msgtype: 'm.text', body: 'x' } })).status
}
const burst = async (count: number): Promise<number[]> => {
  const statuses: number[] = []
  for (let n = 0; n < count; n++) statuses.push(await send())
  return statuses
}

const at = '/v1/users/@alice:localhost/override_ratelimit'

test('a user’s own limit counts at once, and after a restart, until it is taken away', async () => {
  expect(await office.call('GET', at)).toEqual({})
  expect(await burst(4)).toEqual([200, 200, 200, 429])
  expect(await office.call('POST', at, {})).toEqual({ messages_per_second: 0, burst_count: 0 })
  expect(await burst(6)).toEqual(Array(6).fill(200))
  await office.server.restart()
  expect(await burst(6)).toEqual(Array(6).fill(200))
  const own = { messages_per_second: 1, burst_count: 2 }
  expect(await office.call('POST', at, own)).toEqual(own)
  expect(await office.call('GET', at)).toEqual(own)
  expect((await burst(6)).filter((status) => status === 429).length).toBeGreaterThan(0)
  expect(await office.call('DELETE', at)).toEqual({})
  expect(await office.call('GET', at)).toEqual({})
})

test.each([
  [at, { messages_per_second: -1 }, 400],
  [at, { burst_count: 1.5 }, 400],
  ['/v1/users/@nobody:localhost/override_ratelimit', {}, 404],
  ['/v1/users/@x:other.example/override_ratelimit', {}, 400],
])('%s %j is refused', async (path, body, status) => {
  expect((await office.ask('POST', path, body)).status).toBe(status)
})
