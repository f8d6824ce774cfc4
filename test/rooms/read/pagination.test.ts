import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Json, mapConcurrently } from '../../support/api.ts'
import { type House, idsOf, inRoom, openHouse, type Person, textsOf } from '../people.ts'

/** More than the server keeps of a room's end in memory. */
const MESSAGES = 150

let house: House
let alice: Person
let bob: Person
let room: string
/** All events of the room, oldest first, by one large page. */
let everything: string[]

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  for (let number = 0; number < MESSAGES; number++) await (number % 3 === 0 ? bob : alice).say(room, String(number))
  const { chunk, end } = await page(alice, { dir: 'f', limit: 1000 })
  expect(end).toBeUndefined()
  everything = idsOf(chunk)
})

afterAll(() => house.close())

interface Query {
  readonly dir: 'b' | 'f'
  readonly from?: string
  readonly to?: string
  readonly limit?: number
  readonly filter?: object
}

function query({ filter, ...rest }: Query): string {
  const params = new URLSearchParams(
    Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, String(value)])),
  )
  if (filter) params.set('filter', JSON.stringify(filter))
  return inRoom(room, `/messages?${params}`)
}

const page = (person: Person, wish: Query): Promise<Json> => person.call('GET', query(wish))

/** Follows `end` until there is none, and gives all that came, page by page. */
async function pages(person: Person, wish: Query): Promise<Json[][]> {
  const all: Json[][] = []
  let { from } = wish
  for (;;) {
    const { chunk, start, end } = await page(person, { ...wish, ...(from === undefined ? {} : { from }) })
    if (from !== undefined) expect(start).toBe(from)
    all.push(chunk)
    if (end === undefined) return all
    expect(all.length).toBeLessThan(1000)
    from = end
  }
}

describe('messages', () => {
  it.each([1, 7, 64, 149, 200])('come without gaps or doubles in pages of %i, either way', async (limit) => {
    const back = await pages(alice, { dir: 'b', limit })
    const forth = await pages(alice, { dir: 'f', limit })
    expect(idsOf(back.flat())).toEqual(everything.toReversed())
    expect(idsOf(forth.flat())).toEqual(everything)
    for (const got of [back, forth]) {
      expect(got.slice(0, -1).every((chunk) => chunk.length === limit)).toBe(true)
      expect(got.at(-1)!.length).toBeGreaterThan(0)
    }
  })

  it('come ten at a time when no number is asked for, and none when none is', async () => {
    expect((await page(alice, { dir: 'b' })).chunk).toHaveLength(10)
    const none = await page(alice, { dir: 'b', limit: 0 })
    expect(none.chunk).toEqual([])
    expect((await page(alice, { dir: 'b', limit: 1, from: none.end })).chunk[0].event_id).toBe(everything.at(-1))
  })

  it('go back the way they came from any token', async () => {
    const first = await page(alice, { dir: 'b', limit: 20 })
    const back = await page(alice, { dir: 'f', from: first.end, limit: 20 })
    expect(idsOf(back.chunk)).toEqual(idsOf(first.chunk).toReversed())
  })

  it('stop at `to`', async () => {
    const first = await page(alice, { dir: 'b', limit: 20 })
    const again = await page(alice, { dir: 'b', limit: 100, to: first.end })
    expect(idsOf(again.chunk)).toEqual(idsOf(first.chunk))
    expect(again.end).toBeUndefined()
    const forth = await page(alice, { dir: 'f', from: first.end, to: first.start, limit: 100 })
    expect(idsOf(forth.chunk)).toEqual(idsOf(first.chunk).toReversed())
  })

  it('join up with the timelines of sync, wherever these were cut', async () => {
    const filter = encodeURIComponent(JSON.stringify({ room: { timeline: { limit: 5 } } }))
    const { next_batch, rooms } = await bob.sync(`&filter=${filter}`)
    const { events, prev_batch, limited } = rooms.join[room].timeline
    expect(limited).toBe(true)
    const before = await pages(bob, { dir: 'b', from: prev_batch, limit: 50 })
    expect([...idsOf(before.flat()).toReversed(), ...idsOf(events)]).toEqual(everything)
    const since = await page(bob, { dir: 'b', from: next_batch, limit: 3 })
    expect(idsOf(since.chunk)).toEqual(everything.slice(-3).toReversed())
    expect((await page(bob, { dir: 'f', from: next_batch })).chunk).toEqual([])
  })

  it('from a token stay the same while others talk', async () => {
    const other = await alice.createRoom({ preset: 'public_chat' })
    await Promise.all(Array.from({ length: 20 }, (_, number) => alice.say(other, `before ${number}`)))
    const path = (from: string) => inRoom(other, `/messages?dir=b&limit=10&from=${from}`)
    const { next_batch } = await alice.sync()
    const expected = (await alice.call('GET', path(next_batch))).chunk
    const [during] = await Promise.all([
      alice.call('GET', path(next_batch)),
      ...Array.from({ length: 20 }, (_, number) => alice.say(other, `after ${number}`)),
    ])
    expect(idsOf(during.chunk)).toEqual(idsOf(expected))
    const { chunk } = await alice.call('GET', inRoom(other, `/messages?dir=f&limit=100&from=${next_batch}`))
    expect(textsOf(chunk).sort()).toEqual(Array.from({ length: 20 }, (_, number) => `after ${number}`).sort())
  })

  it('are filtered before they are counted', async () => {
    const filter = { senders: [bob.userId], types: ['m.room.mess*'] }
    const got = await pages(alice, { dir: 'b', limit: 6, filter })
    const spoken = textsOf(got.flat())
    expect(spoken).toEqual(
      Array.from({ length: MESSAGES }, (_, number) => number)
        .filter((number) => number % 3 === 0)
        .map(String)
        .toReversed(),
    )
    expect(got.slice(0, -1).every((chunk) => chunk.length === 6)).toBe(true)
    const nothing = await page(alice, { dir: 'b', filter: { not_rooms: [room] } })
    expect(nothing).toMatchObject({ chunk: [] })
    expect(nothing.end).toBeUndefined()
  })

  it('bring their senders along when members are loaded lazily', async () => {
    const wish = { dir: 'b', limit: 3, filter: { lazy_load_members: true } } as const
    const { chunk, state } = await page(alice, wish)
    const senders = new Set(chunk.map(({ sender }: Json) => sender))
    expect(senders.size).toBe(2)
    expect(new Set(state.map(({ state_key }: Json) => state_key))).toEqual(senders)
    expect(state.every(({ type }: Json) => type === 'm.room.member')).toBe(true)
    expect((await page(alice, { dir: 'b', limit: 2 })).state).toBeUndefined()
  })

  it('that are far apart are found all the same, though some pages may be empty', async () => {
    const hall = await alice.createRoom()
    await mapConcurrently(Array.from({ length: 2_500 }), 64, () => alice.say(hall, 'hay'))
    const url = encodeURIComponent('{"not_types":["m.room.message"]}')
    const found: string[] = []
    let from = ''
    let count = 0
    do {
      const { chunk, end } = await alice.call('GET', inRoom(hall, `/messages?dir=b&limit=100&filter=${url}${from}`))
      found.push(...chunk.map(({ type }: Json) => type))
      from = end === undefined ? '' : `&from=${end}`
      count += 1
    } while (from !== '')
    expect(count).toBe(2)
    expect(found.at(-1)).toBe('m.room.create')
  })

  it('show members as they were, not as they are', async () => {
    const carol = await house.person('carol')
    const club = await alice.createRoom({ preset: 'public_chat' })
    await carol.call('PUT', `/profile/${carol.userId}/displayname`, { displayname: 'Carol' })
    await carol.join(club)
    const said = await carol.say(club, 'hello')
    await alice.say(club, 'hello Carol')
    await carol.setState(club, 'm.room.member', { membership: 'join', displayname: 'Caroline' }, carol.userId)
    const filter = encodeURIComponent('{"lazy_load_members":true}')
    const { state } = await alice.call(
      'GET',
      inRoom(club, `/context/${encodeURIComponent(said)}?limit=0&filter=${filter}`),
    )
    expect(state).toHaveLength(1)
    expect(state[0].content.displayname).toBe('Carol')
  })

  it.each([
    ['from=x1', 'M_INVALID_PARAM'],
    ['from=t', 'M_INVALID_PARAM'],
    ['to=s1', 'M_INVALID_PARAM'],
    ['limit=-1', 'M_INVALID_PARAM'],
    ['limit=many', 'M_INVALID_PARAM'],
    ['filter=nonsense', 'M_INVALID_PARAM'],
    ['filter={"limit":-1}', 'M_INVALID_PARAM'],
    ['filter={"types":"m.room.message"}', 'M_BAD_JSON'],
    ['dir=b', 'M_INVALID_PARAM'],
  ])('refuse %s', async (wrong, errcode) => {
    const path = inRoom(room, `/messages?dir=b&${wrong.replace('{', '%7B').replace('}', '%7D')}`)
    expect(await alice.ask('GET', path)).toMatchObject({ status: 400, body: { errcode } })
  })

  it('want to know in which direction', async () => {
    expect(await alice.ask('GET', inRoom(room, '/messages'))).toMatchObject({
      status: 400,
      body: { errcode: 'M_MISSING_PARAM' },
    })
    expect((await alice.ask('GET', inRoom(room, '/messages?dir=up'))).status).toBe(400)
  })
})

describe('context', () => {
  const context = (id: string, rest: string): Promise<Json> =>
    alice.call('GET', inRoom(room, `/context/${encodeURIComponent(id)}?${rest}`))

  it('is what lies around an event, and goes on from both ends', async () => {
    const index = everything.length - 80
    const id = everything[index]!
    const { events_before, event, events_after, start, end } = await context(id, 'limit=9')
    expect(event.event_id).toBe(id)
    expect(events_before).toHaveLength(4)
    expect(events_after).toHaveLength(5)
    const before = await page(alice, { dir: 'b', from: start, limit: 3 })
    const later = await page(alice, { dir: 'f', from: end, limit: 3 })
    const around = [...before.chunk.toReversed(), ...events_before.toReversed(), event, ...events_after, ...later.chunk]
    expect(idsOf(around)).toEqual(everything.slice(index - 7, index + 9))
  })

  it('of nothing but the event still has tokens', async () => {
    const last = everything.at(-1)!
    const { events_before, events_after, start, end } = await context(last, 'limit=0')
    expect([events_before, events_after]).toEqual([[], []])
    expect((await page(alice, { dir: 'b', from: start, limit: 1 })).chunk[0].event_id).toBe(everything.at(-2))
    expect((await page(alice, { dir: 'f', from: end })).chunk).toEqual([])
  })

  it('comes with the state after its last event', async () => {
    const club = await alice.createRoom({ topic: 'old' })
    const said = encodeURIComponent(await alice.say(club, 'hello'))
    await alice.setState(club, 'm.room.topic', { topic: 'new' })
    const topicIn = async (rest: string) => {
      const { state } = await alice.call('GET', inRoom(club, `/context/${said}?${rest}`))
      return state.find(({ type }: Json) => type === 'm.room.topic').content.topic
    }
    expect(await topicIn('limit=0')).toBe('old')
    expect(await topicIn('limit=10')).toBe('new')
  })

  it('leaves out what its filter does not want, save the event itself', async () => {
    const id = everything[everything.length - 80]!
    const filter = encodeURIComponent(JSON.stringify({ types: ['m.room.create'] }))
    const { event, events_before, events_after, state } = await context(id, `limit=10&filter=${filter}`)
    expect(event.event_id).toBe(id)
    expect([...events_before, ...events_after].every(({ type }) => type === 'm.room.create')).toBe(true)
    expect(state.map(({ type }: Json) => type)).toEqual(['m.room.create'])
  })
})

describe('the event at a time', () => {
  const at = (ts: number, dir: string) =>
    alice.ask('GET', `/_matrix/client/v1${inRoom(room, `/timestamp_to_event?ts=${ts}&dir=${dir}`)}`)

  it('is the nearest in the direction asked for', async () => {
    const { chunk } = await page(alice, { dir: 'f', limit: 1000 })
    const middle = chunk[100]
    const { body } = await at(middle.origin_server_ts, 'f')
    expect(body.origin_server_ts).toBe(middle.origin_server_ts)
    const before = await at(middle.origin_server_ts - 1, 'b')
    expect(before.body.origin_server_ts).toBeLessThan(middle.origin_server_ts)
    const index = everything.indexOf(before.body.event_id)
    expect(chunk[index + 1].origin_server_ts).toBeGreaterThan(middle.origin_server_ts - 1)
    expect((await at(0, 'f')).body.event_id).toBe(everything[0])
    expect((await at(8_640_000_000_000_000, 'b')).body.event_id).toBe(everything.at(-1))
  })

  it('may not exist', async () => {
    expect(await at(0, 'b')).toMatchObject({ status: 404, body: { errcode: 'M_NOT_FOUND' } })
    expect((await at(8_640_000_000_000_000, 'f')).status).toBe(404)
  })
})
