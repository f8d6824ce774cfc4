import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Account, createRoom } from '../support/api.ts'
import { type Neighbour, type Neighbourhood, openNeighbourhood } from '../support/neighbours.ts'
import { json, startTlsServer } from '../support/tls-server.ts'

let street: Neighbourhood
let alpha: Neighbour
let beta: Neighbour
let alice: Account
let bob: Account

beforeAll(async () => {
  street = openNeighbourhood()
  ;[alpha, beta] = await Promise.all([street.open(), street.open()])
  alice = await alpha.person('alice')
  bob = await beta.person('bob')
})

afterAll(() => street.close())

const enc = encodeURIComponent
const profile = (userId: string, field = '') => beta.api.request('GET', `/profile/${enc(userId)}${field}`)
const rooms = (server: string, body?: object, query = '') =>
  beta.api.request(body ? 'POST' : 'GET', `/publicRooms?server=${enc(server)}${query}`, { token: bob.token, body })

/** A server that answers everything so, for as long as something is asked of it. */
async function withServer(answer: unknown, status: number, ask: (name: string) => Promise<void>): Promise<void> {
  const server = await startTlsServer(street.authority.issue(['localhost']), json(answer, status))
  await ask(`localhost:${server.port}`)
  await server.close()
}

describe('profiles of users of other servers', () => {
  it('are told whole and by field', async () => {
    const path = `/profile/${enc(alice.userId)}/displayname`
    await alpha.api.call('PUT', path, { token: alice.token, body: { displayname: 'Alice' } })
    expect(await profile(alice.userId)).toEqual({ status: 200, body: { displayname: 'Alice' } })
    expect(await profile(alice.userId, '/displayname')).toEqual({ status: 200, body: { displayname: 'Alice' } })
    expect(await profile(alice.userId, '/avatar_url')).toEqual({ status: 200, body: {} })
  })

  it('are asked for once a minute', async () => {
    const carol = await alpha.person('carol')
    const before = alpha.front.requests.length
    await Promise.all([profile(carol.userId), profile(carol.userId), profile(carol.userId, '/displayname')])
    expect(alpha.front.requests.slice(before).filter(({ url }) => url.includes('query/profile'))).toHaveLength(1)
  })

  it('are not there for users that their server does not have, and not for servers that do not answer', async () => {
    expect(await profile(`@nobody:${alpha.name}`)).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
    expect(await profile('@nobody:localhost:1')).toMatchObject({ status: 502, body: { errcode: 'M_UNKNOWN' } })
  })

  it('are refused when they are too large, read as far as they make sense, and a 401 stays between the servers', async () => {
    await withServer({ displayname: 'x'.repeat(70_000) }, 200, async (name) => {
      expect((await profile(`@big:${name}`)).status).toBe(502)
    })
    await withServer({ displayname: { a: 1 }, avatar_url: null, 'org.example.hue': [7] }, 200, async (name) => {
      expect(await profile(`@odd:${name}`)).toEqual({ status: 200, body: { 'org.example.hue': [7] } })
    })
    await withServer({ errcode: 'M_UNKNOWN_TOKEN', error: '' }, 401, async (name) => {
      expect(await profile(`@who:${name}`)).toMatchObject({ status: 502, body: { errcode: 'M_UNKNOWN' } })
    })
  })
})

describe('the directory of another server', () => {
  it('is listed, searched and turned over', async () => {
    const make = (name: string) =>
      createRoom(alpha.api, alice.token, { preset: 'public_chat', visibility: 'public', name })
    const [tables, chairs] = [await make('Tables'), await make('Chairs')]
    const ids = ({ body }: { body: { chunk: { room_id: string }[] } }) => body.chunk.map(({ room_id }) => room_id)
    expect(ids(await rooms(alpha.name)).sort()).toEqual([tables, chairs].sort())
    expect(ids(await rooms(alpha.name, { filter: { generic_search_term: 'chai' } }))).toEqual([chairs])
    const first = await rooms(alpha.name, { limit: 1 })
    const second = await rooms(alpha.name, undefined, `&limit=1&since=${enc(first.body.next_batch)}`)
    expect([...ids(first), ...ids(second)].sort()).toEqual([tables, chairs].sort())
    expect(first.body.total_room_count_estimate).toBe(2)
  })

  it('is as much of what it answers as makes sense', async () => {
    const room = { room_id: '!a:b', num_joined_members: 1, world_readable: false, guest_can_join: false }
    await withServer({ chunk: [room, 1, {}, { room_id: 7 }], next_batch: 5, extra: {} }, 200, async (name) => {
      expect(await rooms(name)).toEqual({ status: 200, body: { chunk: [room] } })
    })
    await withServer({ chunk: 'none' }, 200, async (name) => expect((await rooms(name)).body).toEqual({ chunk: [] }))
    expect(await rooms('localhost:1')).toMatchObject({ status: 502, body: { errcode: 'M_UNKNOWN' } })
  })
})
