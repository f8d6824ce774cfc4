import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, createRoom, join, sendText } from '../../support/api.ts'
import { type Office, openOffice } from '../office.ts'

let office: Office
let alice: Account
let bob: Account
const rooms: Record<string, string> = {}

const enc = encodeURIComponent

beforeAll(async () => {
  office = await openOffice()
  alice = await office.person('alice')
  bob = await office.person('bob')
  const make = (body: object) => createRoom(office.api, alice.token, body)
  rooms.square = await make({
    name: 'Market Square',
    topic: 'Everything',
    preset: 'public_chat',
    visibility: 'public',
    room_alias_name: 'square',
  })
  rooms.attic = await make({
    name: 'attic',
    initial_state: [{ type: 'm.room.encryption', state_key: '', content: { algorithm: 'm.megolm.v1.aes-sha2' } }],
  })
  rooms.space = await make({
    name: 'Cosmos',
    room_version: '10',
    creation_content: { type: 'm.space', 'm.federate': false },
  })
  rooms.empty = await make({ name: 'Desert' })
  await join(office.api, bob.token, rooms.square)
  await office.api.call('POST', `/rooms/${enc(rooms.empty)}/leave`, { token: alice.token, body: {} })
})
afterAll(() => office.close())

const namesOf = (body: { rooms: { name: string }[] }) => body.rooms.map(({ name }) => name)

describe('the list of rooms', () => {
  test('shows what there is to know of each', async () => {
    const { rooms: listed, total_rooms, offset } = await office.call('GET', '/v1/rooms?search_term=market')
    expect([total_rooms, offset]).toEqual([1, 0])
    expect(listed).toEqual([
      {
        room_id: rooms.square,
        name: 'Market Square',
        canonical_alias: '#square:localhost',
        joined_members: 2,
        joined_local_members: 2,
        version: '11',
        creator: alice.userId,
        encryption: null,
        federatable: true,
        public: true,
        join_rules: 'public',
        guest_access: null,
        history_visibility: 'shared',
        state_events: 9,
        room_type: null,
      },
    ])
  })

  test.each([
    ['', ['Cosmos', 'Desert', 'Market Square', 'attic']],
    ['dir=b', ['attic', 'Market Square', 'Desert', 'Cosmos']],
    ['order_by=joined_members&limit=1', ['Market Square']],
    ['order_by=size&limit=1', ['Market Square']],
    ['order_by=encryption&dir=b&limit=1', ['attic']],
    ['order_by=joined_local_members&limit=1', ['Market Square']],
    ['order_by=version&dir=b&limit=1', ['Cosmos']],
    ['order_by=federatable&limit=1', ['Cosmos']],
    ['order_by=public&dir=b&limit=1', ['Market Square']],
    ['order_by=canonical_alias&dir=b&limit=1', ['Market Square']],
    ['order_by=join_rules&dir=b&limit=1', ['Market Square']],
    ['search_term=square', ['Market Square']],
    ['search_term=SQUARE', ['Market Square']],
    ['public_rooms=true', ['Market Square']],
    ['empty_rooms=true', ['Desert']],
    ['empty_rooms=false&public_rooms=false', ['Cosmos', 'attic']],
    ['search_term=nothing', []],
  ])('?%s', async (query, expected) => {
    expect(namesOf(await office.call('GET', `/v1/rooms?${query}`))).toEqual(expected)
  })

  test('comes in pages', async () => {
    const first = await office.call('GET', '/v1/rooms?limit=3')
    const second = await office.call('GET', `/v1/rooms?limit=3&from=${first.next_batch}`)
    expect([...namesOf(first), ...namesOf(second)]).toEqual(['Cosmos', 'Desert', 'Market Square', 'attic'])
    expect(second).toMatchObject({ offset: 3, total_rooms: 4, prev_batch: 0 })
    expect(second.next_batch).toBeUndefined()
  })

  test.each(['order_by=secret', 'dir=x', 'from=-2', 'search_term=%00'])('?%s is refused', async (query) => {
    expect((await office.ask('GET', `/v1/rooms?${query}`)).body.errcode).toBe('M_INVALID_PARAM')
  })
})

test('a room is found and put in order also when its state has branched', async () => {
  const room = await createRoom(office.api, alice.token, { name: 'Zigzag' })
  const { db } = office.server.database
  await db.tx(async (tx) => {
    const [row] = await tx.query<{ room_nid: number }>(
      `UPDATE room SET state_chain = 1, state_seq = 0 WHERE room_id = $1
       RETURNING room_nid, (SELECT max(seq) FROM state_change c WHERE c.room_nid = room.room_nid) AS seq`,
      [room],
    )
    const seq = `SELECT $1, 1, 0, max(seq) FROM state_change WHERE room_nid = $1`
    await tx.query(`INSERT INTO state_chain (room_nid, chain, parent_chain, parent_seq) ${seq}`, [row!.room_nid])
  })
  expect(namesOf(await office.call('GET', '/v1/rooms?search_term=zigzag'))).toEqual(['Zigzag'])
  const names = namesOf(await office.call('GET', '/v1/rooms'))
  expect(names.indexOf('Zigzag')).toBeGreaterThan(names.indexOf('Market Square'))
  expect(names.indexOf('Zigzag')).toBeLessThan(names.indexOf('attic'))
  await db.tx((tx) => tx.query('DELETE FROM room WHERE room_id = $1', [room]))
})

describe('a room', () => {
  test('in detail', async () => {
    expect(await office.call('GET', `/v1/rooms/${enc(rooms.square!)}`)).toMatchObject({
      topic: 'Everything',
      avatar: null,
      joined_local_devices: 2,
      forgotten: false,
      tombstoned: false,
      replacement_room: null,
    })
    const old = await createRoom(office.api, alice.token, {})
    const upgrade = `/rooms/${enc(old)}/upgrade`
    const { replacement_room } = await office.api.call('POST', upgrade, {
      token: alice.token,
      body: { new_version: '11' },
    })
    expect(await office.call('GET', `/v1/rooms/${enc(old)}`)).toMatchObject({ tombstoned: true, replacement_room })
    expect(await office.call('GET', `/v1/rooms/${enc(rooms.space!)}`)).toMatchObject({
      room_type: 'm.space',
      federatable: false,
      version: '10',
    })
    expect((await office.ask('GET', '/v1/rooms/!nothing:localhost')).status).toBe(404)
    expect((await office.ask('GET', '/v1/rooms/nothing')).status).toBe(400)
  })

  test('shows a redacted name no longer', async () => {
    const room = await createRoom(office.api, alice.token, { name: 'Regrettable' })
    const state = await office.api.call('GET', `/rooms/${enc(room)}/state`, { token: alice.token })
    const { event_id } = state.find(({ type }: { type: string }) => type === 'm.room.name')
    await office.call('GET', '/v1/rooms')
    await office.api.call('PUT', `/rooms/${enc(room)}/redact/${enc(event_id)}/1`, { token: alice.token, body: {} })
    expect(await office.call('GET', '/v1/rooms?search_term=regrettable')).toMatchObject({ total_rooms: 0 })
    expect(await office.call('GET', `/v1/rooms/${enc(room)}`)).toMatchObject({ name: null })
  })

  test('its members, its state, its events', async () => {
    const room = rooms.square!
    expect(await office.call('GET', `/v1/rooms/${enc(room)}/members`)).toEqual({
      members: [alice.userId, bob.userId],
      total: 2,
    })
    const { state } = await office.call('GET', `/v1/rooms/${enc(room)}/state`)
    expect(state).toHaveLength(9)
    const { state: names } = await office.call('GET', `/v1/rooms/${enc(room)}/state?type=m.room.name`)
    expect(names).toMatchObject([{ type: 'm.room.name', content: { name: 'Market Square' }, room_id: room }])
    const sent = await sendText(office.api, bob.token, room, '1', 'hello')
    const { event } = await office.call('GET', `/v1/fetch_event/${enc(sent)}`)
    expect(event).toMatchObject({ event_id: sent, room_id: room, sender: bob.userId, content: { body: 'hello' } })
    expect((await office.ask('GET', '/v1/fetch_event/$nothing')).status).toBe(404)
  })

  test('that is blocked is joined by nobody, in no way, until it is free again', async () => {
    const room = await createRoom(office.api, alice.token, { preset: 'public_chat', room_alias_name: 'bad' })
    const at = `/v1/rooms/${enc(room)}/block`
    expect(await office.call('GET', at)).toEqual({ block: false })
    expect(await office.call('PUT', at, { block: true })).toEqual({ block: true })
    expect(await office.call('GET', at)).toEqual({ block: true, user_id: office.boss.userId })
    const member = `/rooms/${enc(room)}/state/m.room.member/${bob.userId}`
    for (const [method, path, body, by] of [
      ['POST', `/join/${enc(room)}`, {}, bob],
      ['POST', `/join/${enc('#bad:localhost')}`, {}, bob],
      ['POST', `/rooms/${enc(room)}/join`, {}, bob],
      ['PUT', member, { membership: 'join' }, bob],
      ['POST', `/rooms/${enc(room)}/invite`, { user_id: bob.userId }, alice],
      ['PUT', member, { membership: 'invite' }, alice],
    ] as const) {
      const { status, body: answer } = await office.api.request(method, path, { token: by.token, body })
      expect([status, answer.errcode], `${method} ${path}`).toEqual([403, 'M_FORBIDDEN'])
    }
    await office.call('PUT', at, { block: false })
    await join(office.api, bob.token, room)
    expect(await office.call('PUT', '/v1/rooms/!unknown:other.example/block', { block: true })).toEqual({ block: true })
  })
})

describe.each(['1', '10', '11', '12'])('in a room of version %s', (room_version) => {
  test('a user is given the power of whoever has most of it', async () => {
    const room = await createRoom(office.api, alice.token, { room_version })
    await office.call('POST', `/v1/rooms/${enc(room)}/make_room_admin`, { user_id: bob.userId })
    const invites = await office.api.call('GET', `/rooms/${enc(room)}/members`, { token: alice.token })
    expect(invites.chunk).toContainEqual(
      expect.objectContaining({ state_key: bob.userId, content: expect.objectContaining({ membership: 'invite' }) }),
    )
    await join(office.api, bob.token, room)
    const path = `/rooms/${enc(room)}/state/m.room.power_levels`
    const levels = await office.api.call('GET', path, { token: bob.token })
    expect(levels.users[bob.userId]).toBe(100)
    const changed = { ...levels, users: { ...levels.users, '@x:localhost': 50 } }
    await office.api.call('PUT', path, { token: bob.token, body: changed })
    await office.call('POST', `/v1/rooms/${enc(room)}/make_room_admin`, { user_id: bob.userId })
  })
})

test('power is not made where nobody of this server has any, nor for who is no user here', async () => {
  const at = (room: string) => `/v1/rooms/${enc(room)}/make_room_admin`
  expect((await office.ask('POST', at(rooms.empty!), { user_id: bob.userId })).status).toBe(403)
  expect((await office.ask('POST', at(rooms.attic!), { user_id: '@x:other.example' })).status).toBe(400)
  expect((await office.ask('POST', at(rooms.attic!), { user_id: '@nobody:localhost' })).status).toBe(404)
  expect((await office.ask('POST', at('!nothing:localhost'), {})).status).toBe(404)
})

test('a user is joined to a room that is open, or that the administrator may invite to', async () => {
  const open = await createRoom(office.api, alice.token, { preset: 'public_chat', room_alias_name: 'open' })
  expect(await office.call('POST', `/v1/join/${enc('#open:localhost')}`, { user_id: bob.userId })).toEqual({
    room_id: open,
  })
  const own = await createRoom(office.api, office.boss.token)
  await office.call('POST', `/v1/join/${enc(own)}`, { user_id: bob.userId })
  expect((await office.call('GET', `/v1/rooms/${enc(own)}/members`)).total).toBe(2)
  const closed = await createRoom(office.api, alice.token)
  expect((await office.ask('POST', `/v1/join/${enc(closed)}`, { user_id: bob.userId })).status).toBe(403)
})
