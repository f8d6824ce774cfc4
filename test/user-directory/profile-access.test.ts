import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, createRoom, join } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'

let street: Neighbourhood
let home: Neighbour
let away: Neighbour
let alice: Account
let bob: Account
let far: Account

const enc = encodeURIComponent
const look = async (whose: string, by?: Account, at = home, rest = '') => {
  const path = `/profile/${enc(whose)}${rest}`
  const { status, body } = await at.api.request('GET', path, by ? { token: by.token } : {})
  return status === 200 ? 200 : `${status} ${body.errcode}`
}
const set = (profiles: object) => home.server.restart({ profiles } as never)

beforeAll(async () => {
  street = openNeighbourhood()
  ;[home, away] = await Promise.all([street.open(), street.open()])
  ;[alice, bob, far] = [await home.person('alice'), await home.person('bob'), await away.person('far')]
})

afterAll(() => street.close())

describe('profiles of this server', () => {
  test('are seen by everybody, unless that is changed', async () => {
    expect([await look(alice.userId), await look(alice.userId, bob)]).toEqual([200, 200])
    expect(await look(alice.userId, far, away)).toBe(200)
  })

  test('may be for who is signed in', async () => {
    await set({ visible_to: 'users' })
    for (const rest of ['', '/displayname']) {
      expect([await look(alice.userId, undefined, home, rest), await look(alice.userId, bob, home, rest)]).toEqual([
        '401 M_MISSING_TOKEN',
        200,
      ])
    }
  })

  test('may be for who shares a room, whether the user exists or not', async () => {
    await set({ visible_to: 'neighbours' })
    const refused = '403 M_FORBIDDEN'
    for (const rest of ['', '/displayname']) {
      expect(await look(alice.userId, undefined, home, rest)).toBe('401 M_MISSING_TOKEN')
      expect(await look(alice.userId, bob, home, rest)).toBe(refused)
      expect(await look(`@nobody:${home.name}`, bob, home, rest)).toBe(refused)
      expect(await look(alice.userId, alice, home, rest)).toBe(200)
      expect(await look(far.userId, bob, home, rest)).toBe(200)
    }
    const room = await createRoom(home.api, alice.token, { preset: 'public_chat' })
    await join(home.api, bob.token, room)
    expect(await look(alice.userId, bob)).toBe(200)
  })

  test('may be for nobody on other servers', async () => {
    await set({ visible_to: 'everybody', over_federation: false })
    expect(await look(alice.userId)).toBe(200)
    const carol = await home.person('carol')
    expect(await look(carol.userId, far, away)).not.toBe(200)
  })
})
