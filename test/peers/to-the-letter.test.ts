import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/core/json.ts'
import { openPeer, type Peer } from '../federation/hostile/peer.ts'
import { type Account, createRoom } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { json } from '../support/tls-server.ts'

let street: Neighbourhood
let home: Neighbour
/** Honest here: it says what a test has it say. */
let peer: Peer
let alice: Account
let open: string
let closed: string

beforeAll(async () => {
  street = openNeighbourhood()
  home = await street.open()
  peer = await openPeer(street.authority)
  alice = await home.person('alice')
  open = await createRoom(home.api, alice.token, { preset: 'public_chat' })
  closed = await createRoom(home.api, alice.token, { preset: 'private_chat' })
})

afterAll(async () => {
  await peer?.close()
  await street?.close()
})

const enc = encodeURIComponent
const F1 = '/_matrix/federation/v1'
const ask = (method: string, uri: string, body?: object) =>
  peer.ask({ name: home.name, url: home.server.baseUrl }, method, uri, body && { body: body as JsonObject })
const make = async (step: string, room: string) => {
  const { status, body } = await ask('GET', `${F1}/make_${step}/${enc(room)}/${enc(peer.eve)}?ver=12`)
  return [status, body.errcode]
}
const UNKNOWN = '!nowhere'

describe('a server that was never in a room', () => {
  it('is told that its user is not in it who would leave, be there such a room or not (seed 3, make_leave)', async () => {
    for (const room of [open, closed, UNKNOWN]) expect(await make('leave', room)).toEqual([403, 'M_FORBIDDEN'])
  })

  it('is told that a public room takes no knocks, and of a closed one nothing (make_knock, make_join)', async () => {
    expect(await make('knock', open)).toEqual([403, 'M_FORBIDDEN'])
    for (const step of ['knock', 'join'])
      for (const room of [closed, UNKNOWN]) expect(await make(step, room)).toEqual([404, 'M_NOT_FOUND'])
  })

  it('is told that the access list of a public room shuts it out: 403 M_FORBIDDEN (seed 3, "Server ACLs")', async () => {
    const acl = { type: 'm.room.server_acl', state_key: '', content: { allow: ['*'], deny: ['localhost'] } }
    const [shut, hidden] = await Promise.all(
      ['public_chat', 'private_chat'].map((preset) =>
        createRoom(home.api, alice.token, { preset, initial_state: [acl] }),
      ),
    )
    expect(await make('join', shut!)).toEqual([403, 'M_FORBIDDEN'])
    expect(await make('join', hidden!)).toEqual([404, 'M_NOT_FOUND'])
  })
})

describe('a user who would join through other servers', () => {
  it.each([
    [404, 'M_NOT_FOUND', '', 403, 'M_FORBIDDEN'],
    [403, 'M_FORBIDDEN', ' and another is away', 403, 'M_FORBIDDEN'],
    [400, 'M_UNABLE_TO_GRANT_JOIN', ' and another is away', 400, 'M_UNABLE_TO_GRANT_JOIN'],
  ])('is told, where one says %i %s%s: %i %s', async (status, errcode, away, ...told) => {
    peer.answer('make_join', json({ errcode, error: 'no' }, status))
    const other = away && '&server_name=nowhere.invalid'
    const path = `/join/${enc('!elsewhere')}?server_name=${peer.name}${other}`
    const answer = await home.api.request('POST', path, { token: alice.token, body: {} })
    peer.repent()
    expect([answer.status, answer.body.errcode]).toEqual(told)
  })
})
