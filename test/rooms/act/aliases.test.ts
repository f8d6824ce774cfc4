import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_ALIASES_PER_ROOM } from '../../../src/domain/limits.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})

afterAll(() => house.close())

const at = (alias: string): string => `/directory/room/${encodeURIComponent(alias)}`
const put = (person: Person, alias: string, room: string) => person.ask('PUT', at(alias), { room_id: room })

describe('an alias', () => {
  it('is made by who is in the room, leads there for all, and is listed', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    expect(await put(alice, '#ünter/den:localhost', room)).toEqual({ status: 200, body: {} })
    expect(await put(alice, '#second:localhost', room)).toEqual({ status: 200, body: {} })
    expect(await house.api.call('GET', at('#ünter/den:localhost'))).toEqual({ room_id: room, servers: ['localhost'] })
    expect(await alice.call('GET', inRoom(room, '/aliases'))).toEqual({
      aliases: ['#ünter/den:localhost', '#second:localhost'],
    })
    const { room_id } = await bob.call('POST', `/join/${encodeURIComponent('#second:localhost')}`, {})
    expect(room_id).toBe(room)
  })

  it('is one of 500 of a room at most', async () => {
    const room = await alice.createRoom()
    await house.server.database.db.query(
      `INSERT INTO room_alias (alias, room_nid, creator_nid, created_ts)
       SELECT '#seeded' || n || ':localhost', room.room_nid, 1, 0 FROM room, generate_series(1, $2) AS n WHERE room_id = $1`,
      [room, MAX_ALIASES_PER_ROOM - 1],
    )
    expect((await put(alice, '#last:localhost', room)).status).toBe(200)
    expect(await put(alice, '#toomany:localhost', room)).toMatchObject({
      status: 403,
      body: { errcode: 'M_FORBIDDEN' },
    })
  })

  it('is taken once', async () => {
    const [one, other] = [await alice.createRoom(), await bob.createRoom()]
    const attempts = await Promise.all([
      ...Array.from({ length: 4 }, () => put(alice, '#prize:localhost', one)),
      ...Array.from({ length: 4 }, () => put(bob, '#prize:localhost', other)),
    ])
    expect(attempts.filter(({ status }) => status === 200)).toHaveLength(1)
    const refused = attempts.filter(({ status }) => status !== 200)
    expect(refused.map(({ status, body }) => [status, body.errcode])).toEqual(refused.map(() => [409, 'M_UNKNOWN']))
  })

  it('is not made for a room one is not in, nor for one that is not there', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    expect(await put(bob, '#hers:localhost', room)).toMatchObject({ status: 403, body: { errcode: 'M_FORBIDDEN' } })
    expect((await put(bob, '#none:localhost', '!none:localhost')).status).toBe(403)
    expect((await house.api.request('GET', at('#hers:localhost'))).body.errcode).toBe('M_NOT_FOUND')
  })

  it.each([
    '#elsewhere:example.org',
    '#with space:localhost',
    '#:localhost',
    'no-sigil:localhost',
    '#noserver',
    `#${'x'.repeat(255 - '#:localhost'.length + 1)}:localhost`,
  ])('%s cannot be made here', async (alias) => {
    const room = await alice.createRoom()
    expect(await put(alice, alias, room)).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
  })

  it('may be 255 bytes long', async () => {
    const room = await alice.createRoom()
    const alias = `#${'x'.repeat(255 - '#:localhost'.length)}:localhost`
    expect((await put(alice, alias, room)).status).toBe(200)
    expect((await house.api.call('GET', at(alias))).room_id).toBe(room)
  })

  it('is removed by who made it or who may name the room, and by nobody else', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    await put(bob, '#bobs:localhost', room)
    await put(alice, '#alices:localhost', room)
    expect(await bob.ask('DELETE', at('#alices:localhost'))).toMatchObject({
      status: 403,
      body: { errcode: 'M_FORBIDDEN' },
    })
    expect(await alice.ask('DELETE', at('#bobs:localhost'))).toEqual({ status: 200, body: {} })
    await put(bob, '#bobs:localhost', room)
    expect((await bob.ask('DELETE', at('#bobs:localhost'))).status).toBe(200)
    expect((await bob.ask('DELETE', at('#bobs:localhost'))).body.errcode).toBe('M_NOT_FOUND')
    expect((await alice.call('GET', inRoom(room, '/aliases'))).aliases).toEqual(['#alices:localhost'])
  })

  it('given to a new room is its canonical alias, and is not given twice', async () => {
    const room = await alice.createRoom({ room_alias_name: 'pub' })
    expect(await alice.call('GET', inRoom(room, '/state/m.room.canonical_alias'))).toEqual({ alias: '#pub:localhost' })
    expect((await house.api.call('GET', at('#pub:localhost'))).room_id).toBe(room)
    const taken = await bob.ask('POST', '/createRoom', { room_alias_name: 'pub' })
    expect(taken).toMatchObject({ status: 400, body: { errcode: 'M_ROOM_IN_USE' } })
    const malformed = await bob.ask('POST', '/createRoom', { room_alias_name: 'a:b' })
    expect(malformed).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
  })

  it('is free again when its room was not made after all', async () => {
    const refused = await alice.ask('POST', '/createRoom', {
      room_alias_name: 'phoenix',
      power_level_content_override: { events: { 'm.room.name': 'high' } },
      room_version: '11',
      name: 'x',
      initial_state: [{ type: 'm.room.create', content: {} }],
    })
    expect(refused.status).toBe(400)
    expect((await house.api.request('GET', at('#phoenix:localhost'))).status).toBe(404)
    await alice.createRoom({ room_alias_name: 'phoenix' })
  })

  it('reserved for a room that never came is free after a while', async () => {
    const { db } = house.server.database
    const reserve = (alias: string, ts: number) =>
      db.query('INSERT INTO room_alias (alias, room_nid, creator_nid, created_ts) VALUES ($1, 999999, 1, $2)', [
        alias,
        ts,
      ])
    await reserve('#stale:localhost', Date.now() - 3_600_000)
    await reserve('#fresh:localhost', Date.now())
    const room = await alice.createRoom()
    expect((await house.api.request('GET', at('#stale:localhost'))).status).toBe(404)
    expect((await put(alice, '#fresh:localhost', room)).status).toBe(409)
    expect((await put(alice, '#stale:localhost', room)).status).toBe(200)
  })
})

describe('the canonical alias', () => {
  const set = (room: string, content: object) =>
    alice.ask('PUT', inRoom(room, '/state/m.room.canonical_alias'), content)

  it('leads to the room, like all the others it names', async () => {
    const [room, other] = [await alice.createRoom(), await alice.createRoom()]
    await put(alice, '#here:localhost', room)
    await put(alice, '#also-here:localhost', room)
    await put(alice, '#there:localhost', other)
    const bad = { status: 400, body: { errcode: 'M_BAD_ALIAS' } }
    expect(await set(room, { alias: '#there:localhost' })).toMatchObject(bad)
    expect(await set(room, { alias: '#nowhere:localhost' })).toMatchObject(bad)
    expect(await set(room, { alias: '#here:localhost', alt_aliases: ['#there:localhost'] })).toMatchObject(bad)
    expect((await set(room, { alias: '#here:localhost', alt_aliases: ['#also-here:localhost'] })).status).toBe(200)
    expect((await set(room, { alias: '' })).status).toBe(200)
    expect((await set(room, { alias: null, alt_aliases: ['#here:localhost'] })).status).toBe(200)
    expect((await set(room, {})).status).toBe(200)
  })

  it.each([
    { alias: 'here' },
    { alias: 5 },
    { alias: '#here' },
    { alt_aliases: '#here:localhost' },
    { alt_aliases: ['#here:localhost', null] },
    { alias: `#${'x'.repeat(300)}:localhost` },
  ])('is an alias: %o is not', async (content) => {
    const room = await alice.createRoom()
    expect(await set(room, content)).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
  })

  it('may keep what leads nowhere by now', async () => {
    const room = await alice.createRoom({ room_alias_name: 'old' })
    await put(alice, '#new:localhost', room)
    await house.server.database.db.query(`DELETE FROM room_alias WHERE alias = '#old:localhost'`)
    expect((await set(room, { alias: '#new:localhost', alt_aliases: ['#old:localhost'] })).status).toBe(200)
    expect(
      (await set(room, { alias: '#new:localhost', alt_aliases: ['#old:localhost', '#other:localhost'] })).status,
    ).toBe(400)
  })

  it('goes with the alias, where who removes that may change it', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', room_alias_name: 'going' })
    await put(alice, '#staying:localhost', room)
    await set(room, { alias: '#going:localhost', alt_aliases: ['#staying:localhost', '#going:localhost'], note: 1 })
    await alice.call('DELETE', at('#going:localhost'))
    const canonical = inRoom(room, '/state/m.room.canonical_alias')
    expect(await alice.call('GET', canonical)).toEqual({ alt_aliases: ['#staying:localhost'], note: 1 })
    await bob.join(room)
    await put(bob, '#bob-named-it:localhost', room)
    await set(room, { alias: '#bob-named-it:localhost' })
    await bob.call('DELETE', at('#bob-named-it:localhost'))
    expect(await alice.call('GET', canonical)).toEqual({ alias: '#bob-named-it:localhost' })
    expect((await house.api.request('GET', at('#bob-named-it:localhost'))).status).toBe(404)
  })
})

describe('joining', () => {
  it.each([
    ['an alias that leads nowhere', '#nowhere:localhost', 404, 'M_NOT_FOUND'],
    ['a room that is not there', '!nowhere:localhost', 403, 'M_FORBIDDEN'],
    ['what is neither', '@alice:localhost', 400, 'M_INVALID_PARAM'],
  ])('%s fails', async (_, target, status, errcode) => {
    const answer = await bob.ask('POST', `/join/${encodeURIComponent(target)}`, {})
    expect(answer).toMatchObject({ status, body: { errcode } })
  })
})
