import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildEvent } from '../../src/core/event/build.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import type { Account } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { openStranger } from '../support/stranger.ts'
import { waitUntil } from '../support/wait.ts'

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

  it('lets in by its own server who is in another room, where nobody on theirs may (restricted rooms)', async () => {
    const carol = await beta.person('carol')
    const make = async (options: object): Promise<string> =>
      (await alpha.api.call('POST', '/createRoom', { token: alice.token, body: options })).room_id
    const space = await make({ preset: 'public_chat' })
    const allow = [{ type: 'm.room_membership', room_id: space }]
    const rules = { type: 'm.room.join_rules', state_key: '', content: { join_rule: 'restricted', allow } }
    const power_level_content_override = { invite: 50 }
    const room = await make({ preset: 'private_chat', power_level_content_override, initial_state: [rules] })
    const join = (who: Account, at: string, via = '') =>
      beta.api.request('POST', `/join/${enc(at)}${via}`, { token: who.token, body: {} })
    const via = `?server_name=${alpha.name}`
    for (const at of [space, room]) expect((await join(bob, at, via)).status).toBe(200)
    // Bob's server is in the room, and says for itself that carol is not in the space.
    expect(await join(carol, room)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    expect((await join(carol, space)).status).toBe(200)
    // Alpha answers by what it has heard of the space.
    const heard = () => alpha.api.call('GET', `/rooms/${enc(space)}/joined_members`, { token: alice.token })
    await waitUntil('alpha to know that carol is in the space', async () => carol.userId in (await heard()).joined)
    expect(await join(carol, room)).toEqual({ status: 200, body: { room_id: room } })
    const { joined } = await beta.api.call('GET', `/rooms/${enc(room)}/joined_members`, { token: bob.token })
    expect(Object.keys(joined).sort()).toEqual([alice.userId, bob.userId, carol.userId].sort())
  })

  it('is joined and left by the first release of send_join and send_leave', async () => {
    const body = { preset: 'public_chat', room_version: '11' }
    const { room_id } = await alpha.api.call('POST', '/createRoom', { token: alice.token, body })
    const stranger = await openStranger(street.authority)
    const eve = `@eve:${stranger.name}`
    const to = { name: alpha.name, url: alpha.server.baseUrl }
    const path = (operation: string) => `/_matrix/federation/v1/${operation}/${enc(room_id)}`
    const change = async (membership: 'join' | 'leave') => {
      const make = await stranger.ask(to, 'GET', `${path(`make_${membership}`)}/${enc(eve)}?ver=11`)
      const template = { ...make.body.event, origin_server_ts: Date.now() }
      const event = buildEvent(roomVersion('11')!, template, stranger.name, stranger.key)
      const uri = `${path(`send_${membership}`)}/${enc(event.eventId)}`
      return stranger.ask(to, 'PUT', uri, { body: event.pdu as JsonObject })
    }
    const joined = await change('join')
    expect(joined).toMatchObject({
      status: 200,
      body: [200, { auth_chain: expect.any(Array), state: expect.any(Array) }],
    })
    const members = async () =>
      Object.keys((await alpha.api.call('GET', `/rooms/${enc(room_id)}/joined_members`, { token: alice.token })).joined)
    expect(await members()).toContain(eve)
    expect(await change('leave')).toEqual({ status: 200, body: [200, {}] })
    expect(await members()).not.toContain(eve)
    await stranger.close()
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
