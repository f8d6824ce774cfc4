import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, inRoom, openHouse, type Person } from './people.ts'

let house: House
let alice: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
})
afterAll(() => house.close())

describe('a profile', () => {
  it('whose name and picture are set at once reaches rooms with both', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    const set = (field: string, value: string) =>
      alice.call('PUT', `/profile/${encodeURIComponent(alice.userId)}/${field}`, { [field]: value })
    for (let round = 0; round < 5; round++) {
      await Promise.all([set('displayname', `Alice ${round}`), set('avatar_url', `mxc://test/${round}`)])
      const member = await alice.call('GET', inRoom(room, `/state/m.room.member/${encodeURIComponent(alice.userId)}`))
      expect(member).toMatchObject({ displayname: `Alice ${round}`, avatar_url: `mxc://test/${round}` })
    }
  })
})
