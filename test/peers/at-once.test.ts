import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, type Api, type Json, openApi } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { waitUntil } from '../support/wait.ts'

const AT_ONCE = 32
const enc = encodeURIComponent

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let alice: Account
let bob: Account
/** With a connection for each of those that come at once. */
let manyAtAlpha: Api
let manyAtBeta: Api

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
  manyAtAlpha = openApi(alpha.server.baseUrl, { connections: AT_ONCE })
  manyAtBeta = openApi(beta.server.baseUrl, { connections: AT_ONCE })
})

afterAll(async () => {
  await Promise.all([manyAtAlpha.close(), manyAtBeta.close()])
  await street.close()
})

async function makeRoom(join_rule: string): Promise<string> {
  const initial_state = [{ type: 'm.room.join_rules', content: { join_rule } }]
  return (await alpha.api.call('POST', '/createRoom', { token: alice.token, body: { initial_state } })).room_id
}

async function atOnce(api: Api, { token }: Account, method: string, path: string, body: object): Promise<void> {
  const all = await Promise.all(Array.from({ length: AT_ONCE }, () => api.request(method, path, { token, body })))
  expect(all.map(({ status }) => status)).toEqual(all.map(() => 200))
}

async function bobsMemberships(room: string): Promise<string[]> {
  const path = `/rooms/${enc(room)}/messages?dir=f&limit=500`
  const { chunk } = await alpha.api.call('GET', path, { token: alice.token })
  const members = chunk.filter(({ type, state_key }: Json) => type === 'm.room.member' && state_key === bob.userId)
  return members.map(({ content }: Json) => content.membership)
}

const invitationOf = async (room: string): Promise<Json> =>
  (await beta.api.call('GET', '/sync?timeout=0', { token: bob.token })).rooms?.invite?.[room]

describe(`${AT_ONCE} at once, between two servers`, () => {
  test('B7: joins of a room of another server write one event there', async () => {
    const room = await makeRoom('public')
    await atOnce(manyAtBeta, bob, 'POST', `/join/${enc(room)}?via=${enc(alpha.name)}`, {})
    expect(await bobsMemberships(room)).toEqual(['join'])
  })

  test('B7: knocks on a room of another server write one event there', async () => {
    const room = await makeRoom('knock')
    await atOnce(manyAtBeta, bob, 'POST', `/knock/${enc(room)}?via=${enc(alpha.name)}`, {})
    expect(await bobsMemberships(room)).toEqual(['knock'])
  })

  test('B7: invitations of a user of another server write one event', async () => {
    const room = await makeRoom('invite')
    await atOnce(manyAtAlpha, alice, 'POST', `/rooms/${enc(room)}/invite`, { user_id: bob.userId })
    expect(await bobsMemberships(room)).toEqual(['invite'])
  })

  test('B7: state PUTs that invite a user of another server write one event', async () => {
    const room = await makeRoom('invite')
    const path = `/rooms/${enc(room)}/state/m.room.member/${enc(bob.userId)}`
    await atOnce(manyAtAlpha, alice, 'PUT', path, { membership: 'invite' })
    expect(await bobsMemberships(room)).toEqual(['invite'])
  })

  test('B7: rejections of an invitation of another server write one event there', async () => {
    const room = await makeRoom('invite')
    await alpha.api.call('POST', `/rooms/${enc(room)}/invite`, { token: alice.token, body: { user_id: bob.userId } })
    await waitUntil('bob is invited', async () => (await invitationOf(room)) !== undefined)
    await atOnce(manyAtBeta, bob, 'POST', `/rooms/${enc(room)}/leave`, {})
    expect(await bobsMemberships(room)).toEqual(['invite', 'leave'])
  })
})
