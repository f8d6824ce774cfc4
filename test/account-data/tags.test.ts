import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, inRoom, openHouse, type Person } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'

let house: House
let alice: Person
let room: string

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  room = await alice.createRoom()
})
afterAll(() => house.close())

const own = (who: Person, rest: string) => `/user/${encodeURIComponent(who.userId)}${rest}`
const tagsAt = (tag?: string) =>
  own(alice, inRoom(room, tag === undefined ? '/tags' : `/tags/${encodeURIComponent(tag)}`))
const tagsOf = async () => (await alice.call('GET', tagsAt())).tags

describe('the tags of a room', () => {
  it('are added, changed and removed, and come by sync as one whole', async () => {
    const { next_batch: since } = await alice.sync()
    expect(await tagsOf()).toEqual({})
    expect(await alice.ask('PUT', tagsAt('m.favourite'), { order: 0.25 })).toEqual({ status: 200, body: {} })
    await alice.call('PUT', tagsAt('u.Work'), {})
    await alice.call('PUT', tagsAt('m.favourite'), { order: 1, 'org.example.x': [1] })
    const tags = { 'm.favourite': { order: 1, 'org.example.x': [1] }, 'u.Work': {} }
    expect(await tagsOf()).toEqual(tags)
    const { rooms } = await alice.sync(`&since=${since}`)
    expect(rooms.join[room].account_data.events).toEqual([{ type: 'm.tag', content: { tags } }])
    expect(await alice.ask('DELETE', tagsAt('m.favourite'))).toEqual({ status: 200, body: {} })
    expect(await alice.ask('DELETE', tagsAt('m.favourite'))).toEqual({ status: 200, body: {} })
    expect(await tagsOf()).toEqual({ 'u.Work': {} })
  })

  it('may have any name of up to 255 bytes', async () => {
    const names = ['u.ä/ö %', '__proto__', 'x'.repeat(255)]
    for (const name of names) await alice.call('PUT', tagsAt(name), { order: 0 })
    expect(Object.keys(await tagsOf())).toEqual(expect.arrayContaining(names))
    for (const name of names) await alice.call('DELETE', tagsAt(name))
    const tooLong = { status: 400, body: { errcode: 'M_INVALID_PARAM' } }
    expect(await alice.ask('PUT', tagsAt('ä'.repeat(128)), {})).toMatchObject(tooLong)
  })

  it.each([['0.5'], [-0.1], [1.1], [true], [[]]])('have no order %j (S#10519)', async (order) => {
    expect(await alice.ask('PUT', tagsAt('u.order'), { order })).toMatchObject({
      status: 400,
      body: { errcode: 'M_INVALID_PARAM' },
    })
  })

  it('are the own user’s alone', async () => {
    const bob = await house.person('bob')
    const refused = { status: 403, body: { errcode: 'M_FORBIDDEN' } }
    expect(await bob.ask('GET', tagsAt())).toMatchObject(refused)
    expect(await bob.ask('PUT', tagsAt('u.x'), {})).toMatchObject(refused)
    expect(await bob.ask('DELETE', tagsAt('u.x'))).toMatchObject(refused)
  })

  it('are all kept when they are added at once', async () => {
    const names = Array.from({ length: 20 }, (_, number) => `u.at-once-${number}`)
    await Promise.all(names.map((name) => alice.call('PUT', tagsAt(name), {})))
    expect(Object.keys(await tagsOf())).toEqual(expect.arrayContaining(names))
    await Promise.all(names.map((name) => alice.call('DELETE', tagsAt(name))))
    expect(Object.keys(await tagsOf())).not.toEqual(expect.arrayContaining([names[0]]))
  })

  it('are bounded as account data is, and replace what is malformed', async () => {
    const data = own(alice, inRoom(room, '/account_data/m.tag'))
    const large = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`u.${n}-${'x'.repeat(50)}`, {}]))
    await alice.call('PUT', data, { tags: large })
    const tooLarge = { status: 413, body: { errcode: 'M_TOO_LARGE' } }
    expect(await alice.ask('PUT', tagsAt('u.more'), { x: 'y'.repeat(4_000) })).toMatchObject(tooLarge)
    await alice.call('PUT', data, { tags: 'none', other: 1 })
    expect(await tagsOf()).toEqual({})
    await alice.call('PUT', tagsAt('u.good'), {})
    expect(await alice.call('GET', data)).toEqual({ tags: { 'u.good': {} }, other: 1 })
  })
})

describe('account data that is deleted (MSC3391)', () => {
  const places = [
    ['of the account', ''],
    ['of a room', '/room'],
  ] as const
  const unstable = '/_matrix/client/unstable/org.matrix.msc3391'

  it.each(places)('%s is gone, and the user’s clients hear of it once', async (_what, place) => {
    const where = place === '' ? '' : inRoom(room, '')
    const type = `org.example.deleted${place.length}`
    const path = own(alice, `${where}/account_data/${type}`)
    await alice.call('PUT', path, { x: 1 })
    const { next_batch: since } = await alice.sync()
    expect(await alice.ask('DELETE', unstable + path)).toEqual({ status: 200, body: {} })
    expect(await alice.ask('GET', path)).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
    const found = ({ account_data, rooms }: Json): Json[] =>
      (place === '' ? account_data : rooms?.join?.[room]?.account_data)?.events.filter(
        (event: Json) => event.type === type,
      ) ?? []
    const heard = await alice.sync(`&since=${since}`)
    expect(found(heard)).toEqual([{ type, content: {} }])
    expect(found(await alice.sync(`&since=${heard.next_batch}`))).toEqual([])
    expect(found(await alice.sync())).toEqual([])
    expect(await alice.ask('DELETE', unstable + path)).toEqual({ status: 200, body: {} })
    expect(found(await alice.sync(`&since=${heard.next_batch}`))).toEqual([])
    await alice.call('PUT', path, {})
    expect(await alice.call('GET', path)).toEqual({})
  })

  it('is not what only the server writes, nor another user’s', async () => {
    for (const type of ['m.push_rules', 'm.fully_read']) {
      expect(await alice.ask('DELETE', unstable + own(alice, `/account_data/${type}`))).toMatchObject({ status: 405 })
    }
    const carol = await house.person('carol')
    const path = unstable + own(alice, '/account_data/org.example.kept')
    expect(await carol.ask('DELETE', path)).toMatchObject({ status: 403 })
  })

  it('takes no room for ever', async () => {
    const dave = await house.person('dave')
    await house.server.database.db.tx((tx) =>
      tx.query(
        `INSERT INTO account_data (user_nid, room_id, type, content, position, is_deleted)
         SELECT user_nid, '', 'org.example.' || n, '{}', n, true FROM matrix_user, generate_series(1, 1500) AS n WHERE user_id = $1`,
        [dave.userId],
      ),
    )
    const path = own(dave, '/account_data/org.example.last')
    await dave.call('PUT', path, { x: 1 })
    await dave.call('DELETE', unstable + path)
    const [row] = await house.server.database.db.query<{ kept: number }>(
      'SELECT count(*)::int AS kept FROM account_data JOIN matrix_user USING (user_nid) WHERE user_id = $1 AND is_deleted',
      [dave.userId],
    )
    expect(row?.kept).toBe(1_000)
  })
})
