import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

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

  it('is changed also where one of the rooms refuses to hear of it', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    const broken = await alice.createRoom({ preset: 'public_chat' })
    await alice.setState(broken, 'm.room.join_rules', { join_rule: 'a rule of the future' })
    const path = `/profile/${encodeURIComponent(alice.userId)}/displayname`
    expect(await alice.ask('PUT', path, { displayname: 'Alix' })).toEqual({ status: 200, body: {} })
    const nameIn = async (id: string) =>
      (await alice.call('GET', inRoom(id, `/state/m.room.member/${encodeURIComponent(alice.userId)}`))).displayname
    expect(await nameIn(room)).toBe('Alix')
    expect(await nameIn(broken)).not.toBe('Alix')
  })
})
