import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Account } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { openStranger } from '../support/stranger.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let alice: Account
let bob: Account

beforeAll(async () => {
  street = openNeighbourhood()
  alpha = await street.open()
  beta = await street.open()
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
})

afterAll(() => street.close())

const enc = encodeURIComponent

describe('a room of another server', () => {
  it.each(['1', '3', '6', '10', '11', '12'])('is joined by its alias, in room version %s', async (room_version) => {
    const room_alias_name = `sofas-${room_version}`
    const request = { preset: 'public_chat', room_version, room_alias_name, name: 'Sofas' }
    const { room_id } = await alpha.api.call('POST', '/createRoom', { token: alice.token, body: request })
    const said = `/rooms/${enc(room_id)}/send/m.room.message/1`
    await alpha.api.call('PUT', said, { token: alice.token, body: { msgtype: 'm.text', body: 'before' } })
    const alias = `#${room_alias_name}:${alpha.name}`
    const joined = await beta.api.call('POST', `/join/${enc(alias)}`, { token: bob.token, body: {} })
    expect(joined).toEqual({ room_id })
    const ofBoth = [
      [alpha, alice],
      [beta, bob],
    ] as const
    for (const [at, { token }] of ofBoth) {
      const { joined } = await at.api.call('GET', `/rooms/${enc(room_id)}/joined_members`, { token })
      expect(Object.keys(joined).sort()).toEqual([alice.userId, bob.userId].sort())
    }
    const name = await beta.api.call('GET', `/rooms/${enc(room_id)}/state/m.room.name`, { token: bob.token })
    expect(name).toEqual({ name: 'Sofas' })
  })

  it('is not told to a server that does not know its version: 400 M_INCOMPATIBLE_ROOM_VERSION with its version', async () => {
    const body = { preset: 'public_chat', room_version: '12' }
    const { room_id } = await alpha.api.call('POST', '/createRoom', { token: alice.token, body })
    const stranger = await openStranger(street.authority)
    const uri = `/_matrix/federation/v1/make_join/${enc(room_id)}/${enc(`@eve:${stranger.name}`)}?ver=1&ver=6`
    const answer = await stranger.ask({ name: alpha.name, url: alpha.server.baseUrl }, 'GET', uri)
    await stranger.close()
    expect(answer).toMatchObject({
      status: 400,
      body: { errcode: 'M_INCOMPATIBLE_ROOM_VERSION', room_version: '12' },
    })
  })
})
