import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import type { Json } from '../../support/api.ts'
import { type House, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
})
afterAll(() => house.close())

const create = (body: Json) => alice.ask('POST', '/createRoom', body)

describe('createRoom (seed 2, Errors)', () => {
  const member = { type: 'm.room.member', state_key: '@alice:localhost', content: { membership: 'join' } }
  const second = { type: 'm.room.create', state_key: '', content: {} }
  const refused: [name: string, body: Json, errcode: string][] = [
    ['a version that is none', { room_version: 'nonsense' }, 'M_UNSUPPORTED_ROOM_VERSION'],
    ['a version to come', { room_version: '99' }, 'M_UNSUPPORTED_ROOM_VERSION'],
    ['a membership in initial_state', { initial_state: [member] }, 'M_INVALID_ROOM_STATE'],
    ['a second create event', { initial_state: [second] }, 'M_INVALID_ROOM_STATE'],
  ]
  it.each(refused)('refuses %s', async (_name, body, errcode) => {
    const answer = await create(body)
    expect(answer).toMatchObject({ status: 400, body: { errcode, error: expect.any(String) } })
    expect(await alice.call('GET', '/joined_rooms')).toEqual({ joined_rooms: [] })
  })

  it('refuses an alias that is taken', async () => {
    const body = { room_alias_name: 'taken' }
    await alice.createRoom(body)
    const answer = await create(body)
    expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_ROOM_IN_USE' } })
  })
})

describe('createRoom leaves nothing behind of a room that cannot be', () => {
  const levels = (content: Json) => ({ power_level_content_override: content })
  const initial = (type: string, content: Json) => ({ initial_state: [{ type, state_key: '', content }] })
  const locked: readonly [what: string, body: Json, errcode: string][] = [
    ['a creator without power', levels({ users: { '@alice:localhost': 0 } }), 'M_INVALID_ROOM_STATE'],
    ['a creator who is not named', levels({ users: { '@bob:localhost': 100 } }), 'M_INVALID_ROOM_STATE'],
    ['a creator shut out by initial state', initial('m.room.power_levels', { users: {} }), 'M_INVALID_ROOM_STATE'],
    ['power levels that nobody reaches', levels({ events: { 'm.room.power_levels': 101 } }), 'M_INVALID_ROOM_STATE'],
    ['no power for anybody', levels({ users: {}, state_default: 0, invite: 0 }), 'M_INVALID_ROOM_STATE'],
    [
      'state that takes more power',
      { ...levels({ events: { 'm.room.topic': 101 } }), topic: 'x' },
      'M_INVALID_ROOM_STATE',
    ],
  ]
  const creators = ['@bob:localhost', 5, { '@bob:localhost': true }, ['bob'], [5], true]

  async function expectNothing(alias: string): Promise<void> {
    expect((await alice.ask('GET', `/directory/room/${encodeURIComponent(`#${alias}:localhost`)}`)).status).toBe(404)
    const rows = await house.server.database.db.query('SELECT FROM room_alias WHERE alias = $1', [
      `#${alias}:localhost`,
    ])
    expect(rows).toEqual([])
    expect(await alice.call('GET', '/publicRooms')).toMatchObject({ chunk: [] })
  }

  const roomsOf = async (): Promise<Json> => (await alice.call('GET', '/joined_rooms')).joined_rooms
  const tables = ['room', 'event', 'room_member', 'state_key', 'state_change']
  const counts = () =>
    Promise.all(
      tables.map(async (table) => (await house.server.database.db.query(`SELECT count(*)::int AS n FROM ${table}`))[0]),
    )

  test.each(['11', '10'])(
    'B12: version %s: 400 M_INVALID_ROOM_STATE for what locks the creator out',
    async (room_version) => {
      for (const [index, [what, body, errcode]] of locked.entries()) {
        const [joined, before] = [await roomsOf(), await counts()]
        const alias = `locked-${room_version}-${index}`
        const wish = { room_version, visibility: 'public', room_alias_name: alias, ...body }
        const answer = await create(wish)
        expect([what, answer.status, answer.body.errcode]).toEqual([what, 400, errcode])
        expect(await roomsOf()).toEqual(joined)
        expect(await counts()).toEqual(before)
        await expectNothing(alias)
      }
    },
  )

  test('B12: initial state that the rules refuse: 400 M_INVALID_ROOM_STATE', async () => {
    const before = await counts()
    const body = initial('m.room.power_levels', { users: { '@alice:localhost': 100 } })
    // In version 12 the creators stand above all levels and may not be named among them.
    const answer = await create({ ...body, room_version: '12' })
    expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_ROOM_STATE' } })
    const reserved = { initial_state: [{ type: 'x.note', state_key: '@bob:localhost', content: {} }] }
    const other = await create(reserved)
    expect(other).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_ROOM_STATE' } })
    expect(await counts()).toEqual(before)
  })

  test.each(['11', '12'])('B12: version %s: additional_creators of the wrong type: 400', async (room_version) => {
    const before = await counts()
    for (const [index, additional_creators] of creators.entries()) {
      const alias = `creators-${room_version}-${index}`
      const body = { room_version, room_alias_name: alias, creation_content: { additional_creators } }
      const answer = await create(body)
      expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_BAD_JSON' } })
      await expectNothing(alias)
    }
    expect(await counts()).toEqual(before)
  })

  test('B12: who hands the room over at once may', async () => {
    const wish = levels({ users: { '@bob:localhost': 100 }, state_default: 0, events: {} })
    await alice.createRoom({ ...wish, room_version: '11' })
  })
})
