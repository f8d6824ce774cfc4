import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../support/api.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person
let bob: Person
let carol: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  carol = await house.person('carol')
})

afterAll(() => house.close())

const visibilityAt = (room: string) => `/directory/list/room/${encodeURIComponent(room)}`
const search = (filter: object, more: object = {}): Promise<Json> =>
  alice.call('POST', '/publicRooms', { filter, ...more })
const names = ({ chunk }: Json): string[] => chunk.map(({ name }: Json) => name)

describe('the public directory', () => {
  it('shows nothing until something is published', async () => {
    await alice.createRoom({ preset: 'public_chat', name: 'Not listed' })
    expect(await house.api.call('GET', '/publicRooms')).toEqual({ chunk: [], total_room_count_estimate: 0 })
  })

  it('shows what a room says of itself, to anybody', async () => {
    const room = await alice.createRoom({
      visibility: 'public',
      name: 'Cheese',
      topic: 'Tasty',
      room_alias_name: 'cheese',
      creation_content: { type: 'm.space' },
      initial_state: [
        { type: 'm.room.avatar', content: { url: 'mxc://localhost/brie' } },
        { type: 'm.room.history_visibility', content: { history_visibility: 'world_readable' } },
        { type: 'm.room.guest_access', content: { guest_access: 'can_join' } },
      ],
    })
    const { chunk } = await house.api.call('GET', '/publicRooms')
    expect(chunk).toEqual([
      {
        room_id: room,
        name: 'Cheese',
        topic: 'Tasty',
        canonical_alias: '#cheese:localhost',
        avatar_url: 'mxc://localhost/brie',
        num_joined_members: 1,
        world_readable: true,
        guest_can_join: true,
        join_rule: 'public',
        room_type: 'm.space',
      },
    ])
    await alice.call('PUT', visibilityAt(room), { visibility: 'private' })
  })

  it('follows the room', async () => {
    const room = await alice.createRoom({ visibility: 'public', name: 'Before' })
    const entry = async () => (await search({})).chunk.find(({ room_id }: Json) => room_id === room)
    expect(await entry()).toMatchObject({ name: 'Before', num_joined_members: 1 })
    await bob.join(room)
    await alice.setState(room, 'm.room.name', { name: 'After' })
    expect(await entry()).toMatchObject({ name: 'After', num_joined_members: 2 })
    await alice.setState(room, 'm.room.name', {})
    await bob.leave(room)
    expect(await entry()).toMatchObject({ num_joined_members: 1 })
    expect(await entry()).not.toHaveProperty('name')
    await alice.leave(room)
    expect(await entry()).toBeUndefined()
  })

  it('is written by who may name the room', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    const read = async () => (await house.api.call('GET', visibilityAt(room))).visibility
    expect(await read()).toBe('private')
    expect(await bob.ask('PUT', visibilityAt(room), { visibility: 'public' })).toMatchObject({
      status: 403,
      body: { errcode: 'M_FORBIDDEN' },
    })
    expect((await carol.ask('PUT', visibilityAt(room), {})).status).toBe(403)
    expect(await read()).toBe('private')
    expect(await alice.ask('PUT', visibilityAt(room), {})).toEqual({ status: 200, body: {} })
    expect(await read()).toBe('public')
    await alice.call('PUT', visibilityAt(room), { visibility: 'private' })
    expect(await read()).toBe('private')
    expect((await alice.ask('PUT', visibilityAt(room), { visibility: 'secret' })).status).toBe(400)
    const unknown = visibilityAt('!nowhere:localhost')
    expect((await house.api.request('GET', unknown)).body).toEqual({ visibility: 'private' })
    expect((await alice.ask('PUT', unknown, {})).body.errcode).toBe('M_FORBIDDEN')
  })
})

describe('a long directory', () => {
  beforeAll(async () => {
    for (let number = 0; number < 7; number++) {
      const type = number % 2 === 0 ? { creation_content: { type: 'org.example.even' } } : {}
      const room = await alice.createRoom({ visibility: 'public', name: `Long ${number}`, topic: 'PAGES', ...type })
      if (number < 4) await bob.join(room)
      if (number < 2) await carol.join(room)
    }
  })

  const order = ['Long 0', 'Long 1', 'Long 2', 'Long 3', 'Long 4', 'Long 5', 'Long 6']
  const filter = { generic_search_term: 'pages' }

  it('comes in pages, the largest rooms first, forth and back', async () => {
    const first = await search(filter, { limit: 3 })
    expect(names(first)).toEqual(order.slice(0, 3))
    expect(first.prev_batch).toBeUndefined()
    const second = await search(filter, { limit: 3, since: first.next_batch })
    expect(names(second)).toEqual(order.slice(3, 6))
    const third = await search(filter, { limit: 3, since: second.next_batch })
    expect(names(third)).toEqual(order.slice(6))
    expect(third.next_batch).toBeUndefined()
    expect(names(await search(filter, { limit: 3, since: third.prev_batch }))).toEqual(order.slice(3, 6))
    expect(names(await search(filter, { limit: 3, since: second.prev_batch }))).toEqual(order.slice(0, 3))
    expect(first.total_room_count_estimate).toBe(7)
    const viaGet = await house.api.call('GET', `/publicRooms?limit=2&since=${first.next_batch}`)
    expect(names(viaGet)).toEqual(order.slice(3, 5))
  })

  it('shows the plain text of a rich topic', async () => {
    const room = await alice.createRoom({ visibility: 'public', topic: 'Plain' })
    const path = inRoom(room, '/state/m.room.topic')
    expect(await alice.call('GET', path)).toEqual({ topic: 'Plain', 'm.topic': { 'm.text': [{ body: 'Plain' }] } })
    const parts = [{ mimetype: 'text/html', body: '<b>Rich</b>' }, { body: 'Written richly' }]
    await alice.setState(room, 'm.room.topic', { topic: 'Written', 'm.topic': { 'm.text': parts } })
    const { chunk } = await alice.call('POST', '/publicRooms', { filter: { generic_search_term: 'richly' } })
    expect(chunk).toMatchObject([{ room_id: room, topic: 'Written richly' }])
    await alice.call('PUT', visibilityAt(room), { visibility: 'private' })
  })

  it('is searched by name, topic and alias, and by the type of rooms', async () => {
    expect(names(await search({ generic_search_term: 'LONG 3' }))).toEqual(['Long 3'])
    expect(names(await search({ generic_search_term: 'nothing such' }))).toEqual([])
    expect(names(await search({ ...filter, room_types: ['org.example.even'] }))).toHaveLength(4)
    expect(names(await search({ ...filter, room_types: [null] }))).toHaveLength(3)
    expect(names(await search({ ...filter, room_types: [null, 'org.example.even'] }))).toHaveLength(7)
    expect(names(await search({ ...filter, room_types: [] }))).toEqual([])
    expect(names(await search({ generic_search_term: null, room_types: null }))).toHaveLength(7)
  })

  it('refuses what it cannot answer', async () => {
    const post = (body: object, query = '') => alice.ask('POST', `/publicRooms${query}`, body)
    expect(await post({ since: 'elsewhere' })).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
    expect((await post({ limit: -1 })).status).toBe(400)
    expect((await post({}, '?server=example.org')).status).toBe(502)
    for (const server of ['a%20b', '%00', '%7b%7d']) {
      const refused = await post({}, `?server=${server}`)
      expect(refused).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
    }
    expect((await post({}, '?server=localhost')).status).toBe(200)
    expect((await post({ third_party_instance_id: 'irc' })).body.chunk).toEqual([])
    expect((await house.api.request('POST', '/publicRooms', { body: {} })).body.errcode).toBe('M_MISSING_TOKEN')
  })
})
