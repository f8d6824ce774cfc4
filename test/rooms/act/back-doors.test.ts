import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PASSWORD } from '../../support/api.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
})
afterAll(() => house.close())

describe('a guest', () => {
  it('joins by no back door', async () => {
    const { body } = await house.api.request('POST', '/register?kind=guest', { body: {} })
    expect(body.access_token).toEqual(expect.any(String))
    const room = await alice.createRoom({ preset: 'public_chat' })
    const path = inRoom(room, `/state/m.room.member/${encodeURIComponent(body.user_id)}`)
    const answer = await house.api.request('PUT', path, { token: body.access_token, body: { membership: 'join' } })
    expect([answer.status, answer.body.errcode]).toEqual([403, 'M_GUEST_ACCESS_FORBIDDEN'])
  })
})

describe('memberships set as state', () => {
  it('are of users that there are', async () => {
    const room = await alice.createRoom()
    const set = (stateKey: string, membership: string) =>
      alice.ask('PUT', inRoom(room, `/state/m.room.member/${encodeURIComponent(stateKey)}`), { membership })
    expect((await set(`@nobody:${house.server.config.server_name}`, 'invite')).status).toBe(404)
    const gone = await house.person('gone')
    const auth = { type: 'm.login.password', identifier: { type: 'm.id.user', user: gone.userId }, password: PASSWORD }
    await gone.call('POST', '/account/deactivate', { auth })
    expect((await set(gone.userId, 'invite')).status).toBe(404)
    expect((await alice.ask('POST', inRoom(room, '/invite'), { user_id: gone.userId })).status).toBe(404)
    expect((await alice.ask('POST', '/createRoom', { invite: [gone.userId] })).status).toBe(404)
    for (const odd of ['nobody', '@', '__proto__', '@x']) expect((await set(odd, 'invite')).status).toBeLessThan(500)
  })
})
