import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { RoomId } from '../../src/core/ids.ts'
import { signJson } from '../../src/core/signing/json-signature.ts'
import { signingKeyFromSeed } from '../../src/core/signing/key.ts'
import { blockRoom } from '../../src/store/rooms/blocked-rooms.ts'
import { type Account, type Json, sendText } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { waitUntil } from '../support/wait.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let alice: Account
let bob: Account
let room: string

const enc = encodeURIComponent

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
  const displayname = { token: alice.token, body: { displayname: 'Alice' } }
  await alpha.api.call('PUT', `/profile/${enc(alice.userId)}/displayname`, displayname)
})

afterAll(() => street.close())

async function newRoom(room_version: string) {
  const body = { preset: 'private_chat', name: 'Kitchen', room_version }
  room = (await alpha.api.call('POST', '/createRoom', { token: alice.token, body })).room_id
}

const inRoom = (rest: string) => `/rooms/${enc(room)}${rest}`
const invite = (whom: string, reason?: string) =>
  alpha.api.request('POST', inRoom('/invite'), { token: alice.token, body: { user_id: whom, reason } })
const sync = (at: Neighbour, { token }: Account, query = ''): Promise<Json> =>
  at.api.call('GET', `/sync?timeout=0${query}`, { token })
const invitation = async () => (await sync(beta, bob)).rooms?.invite?.[room]
const membershipAtHome = async () => {
  const path = inRoom(`/state/m.room.member/${enc(bob.userId)}`)
  const { status, body } = await alpha.api.request('GET', path, { token: alice.token })
  return status === 200 ? body.membership : 'none'
}

describe.each(['1', '2', '4', '9', '11', '12'])('an invitation across servers, in room version %s', (version) => {
  beforeEach(() => newRoom(version))

  it('arrives in the sync of the invited user, with what the room shows', async () => {
    expect(await invite(bob.userId, 'tea')).toEqual({ status: 200, body: {} })
    const { events } = (await invitation()).invite_state
    expect(events).toContainEqual(expect.objectContaining({ type: 'm.room.name', content: { name: 'Kitchen' } }))
    expect(events.at(-1)).toMatchObject({
      type: 'm.room.member',
      sender: alice.userId,
      state_key: bob.userId,
      content: { membership: 'invite', reason: 'tea' },
    })
    expect(await membershipAtHome()).toBe('invite')
  })

  it('B18: shows there who invites, and the create event', async () => {
    await invite(bob.userId)
    const { events } = (await invitation()).invite_state
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'm.room.member',
        state_key: alice.userId,
        content: expect.objectContaining({ membership: 'join', displayname: 'Alice' }),
      }),
    )
    expect(events).toContainEqual(expect.objectContaining({ type: 'm.room.create', sender: alice.userId }))
  })

  it('is accepted, also after the server was started again', async () => {
    await invite(bob.userId)
    if (version === '11') await beta.server.restart()
    expect(await beta.api.call('POST', inRoom('/join'), { token: bob.token, body: {} })).toEqual({ room_id: room })
    expect(await membershipAtHome()).toBe('join')
    expect(await invitation()).toBe(undefined)
    await sendText(beta.api, bob.token, room, 'hi', 'hi')
    await waitUntil('hi', async () => {
      const { chunk } = await alpha.api.call('GET', inRoom('/messages?dir=b'), { token: alice.token })
      return chunk.some(({ content }: Json) => content.body === 'hi') ? true : undefined
    })
    const { joined_member_count, ...rest } = (await sync(beta, bob)).rooms.join[room].summary ?? {}
    expect(joined_member_count ? [joined_member_count, rest['m.invited_member_count'] ?? 0] : [2, 0]).toEqual([2, 0])
  })

  it('is declined', async () => {
    await invite(bob.userId)
    const { next_batch } = await sync(beta, bob)
    await beta.api.call('POST', inRoom('/leave'), { token: bob.token, body: {} })
    expect(await membershipAtHome()).toBe('leave')
    expect(await invitation()).toBe(undefined)
    expect((await sync(beta, bob, `&since=${next_batch}`)).rooms.leave[room].timeline.events).toHaveLength(1)
  })

  it('is taken back', async () => {
    await invite(bob.userId)
    await alpha.api.call('POST', inRoom('/kick'), { token: alice.token, body: { user_id: bob.userId } })
    await waitUntil('the end of it', async () => ((await invitation()) === undefined ? true : undefined))
    expect(await membershipAtHome()).toBe('leave')
    await invite(bob.userId)
    expect(await invitation()).toBeDefined()
  })
})

describe('an invitation that comes to nothing', () => {
  it('is into a room that the other server has blocked: 403, and nobody there hears of it', async () => {
    await newRoom('11')
    await beta.server.database.db.tx((tx) => blockRoom(tx, room as RoomId, 'test', 0))
    const { status, body } = await invite(bob.userId)
    expect([status, body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    expect(await invitation()).toBeUndefined()
    expect(await membershipAtHome()).toBe('none')
  })

  beforeEach(() => newRoom('12'))

  it('of a user who is not there is refused, and no event of the room', async () => {
    expect(await invite(`@nobody:${beta.name}`)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    const path = inRoom(`/state/m.room.member/${enc(`@nobody:${beta.name}`)}`)
    expect(await alpha.api.request('GET', path, { token: alice.token })).toMatchObject({ status: 404 })
  })

  it('through a server that cannot be reached: 502, and no event of the room', async () => {
    expect(await invite('@bob:localhost:1')).toMatchObject({ status: 502 })
  })

  it('declined while the other server is away, is gone here', async () => {
    await invite(bob.userId)
    const { handler } = alpha.front
    alpha.front.handler = (_request, response) => {
      response.writeHead(502).end()
    }
    await beta.api.call('POST', inRoom('/leave'), { token: bob.token, body: {} })
    alpha.front.handler = handler
    expect(await invitation()).toBe(undefined)
  })
})

describe('inviting while a room is made, and as state', () => {
  it('asks the other server too', async () => {
    const body = { preset: 'trusted_private_chat', invite: [bob.userId, '@bob:localhost:1'], is_direct: true }
    room = (await alpha.api.call('POST', '/createRoom', { token: alice.token, body })).room_id
    expect((await invitation()).invite_state.events.at(-1).content).toMatchObject({ is_direct: true })
    expect(await membershipAtHome()).toBe('invite')
    await newRoom('12')
    const path = inRoom(`/state/m.room.member/${enc(bob.userId)}`)
    await alpha.api.call('PUT', path, { token: alice.token, body: { membership: 'invite' } })
    expect(await invitation()).toBeDefined()
  })
})

describe('an address that was invited, and belongs to a user elsewhere', () => {
  const key = signingKeyFromSeed('ed25519:0', randomBytes(32))
  const boundAt = async (at: Neighbour, token: string, mxid: string) => {
    const word = signJson({ mxid, token }, 'id.test', key)
    const entry = { medium: 'email', address: 'b@e.test', mxid, room_id: room, sender: alice.userId, signed: word }
    const body = { medium: 'email', address: 'b@e.test', mxid, invites: [entry] }
    return at.api.request('PUT', '/_matrix/federation/v1/3pid/onbind', { body })
  }

  it('is exchanged for an invitation of the user', async () => {
    await newRoom('12')
    const path = inRoom('/state/m.room.third_party_invite/abc')
    const invite = { display_name: 'b...@e...', public_key: key.publicKey }
    await alpha.api.call('PUT', path, { token: alice.token, body: invite })
    expect(await boundAt(beta, 'abc', bob.userId)).toEqual({ status: 200, body: {} })
    expect((await invitation()).invite_state.events.at(-1).content.third_party_invite).toMatchObject({
      signed: { mxid: bob.userId, token: 'abc' },
    })
    expect(await membershipAtHome()).toBe('invite')
    await beta.api.call('POST', inRoom('/join'), { token: bob.token, body: {} })
    expect(await membershipAtHome()).toBe('join')
  })

  it('of which the room knows nothing stays to be asked for again', async () => {
    await newRoom('12')
    expect(await boundAt(beta, 'nothing', bob.userId)).toMatchObject({ status: 503 })
  })
})
