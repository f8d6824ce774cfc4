import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_EVENT_PAGE_BYTES } from '../../../src/domain/limits/answers.ts'
import type { Json } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'
import { type House, idsOf, inRoom, openHouse, type Person } from '../people.ts'

const COUNT = 40
const PADDING = 'x'.repeat(60_000)

let house: House
let alice: Person
let bob: Person
let room: string
let root: string
/** The ids of long replies in a thread. */
const replies: string[] = []

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  root = await alice.say(room, 'root')
  for (let n = 0; n < COUNT; n++) {
    const content = {
      msgtype: 'm.text',
      body: `needle ${n}`,
      padding: PADDING,
      'm.mentions': { user_ids: [bob.userId] },
      'm.relates_to': { rel_type: 'm.thread', event_id: root },
    }
    replies.push((await alice.call('PUT', inRoom(room, `/send/m.room.message/l${n}`), content)).event_id)
  }
})
afterAll(() => house.close())

const onReplies = (events: readonly Json[]) => idsOf(events).filter((id) => replies.includes(id))

/** All pages of a list, each of which must be within the bound. */
async function pagesOf(path: (from: string) => string, read: (body: Json) => { events: Json[]; next?: string }) {
  const found: string[] = []
  let pages = 0
  for (let from: string | undefined = ''; from !== undefined && pages < 3 * COUNT; pages++) {
    const body = await bob.call('GET', path(from))
    const { events, next } = read(body)
    expect(JSON.stringify(events).length).toBeLessThan(MAX_EVENT_PAGE_BYTES + 2 * PADDING.length)
    found.push(...onReplies(events))
    from = next
  }
  return { found, pages }
}

describe('a page of long events has only as many as fit', () => {
  it.each(['b', 'f'])('in history, in the direction %s, and the next one goes on', async (dir) => {
    const { found, pages } = await pagesOf(
      (from) => inRoom(room, `/messages?dir=${dir}&limit=1000${from && `&from=${from}`}`),
      ({ chunk, end }) => ({ events: chunk, next: end }),
    )
    expect(found).toEqual(dir === 'b' ? replies.toReversed() : replies)
    expect(pages).toBeGreaterThan(2)
  })

  it.each(['', '&recurse=true'])('among what relates to an event (%s)', async (more) => {
    const path = `/_matrix/client/v1${inRoom(room, `/relations/${encodeURIComponent(root)}?limit=1000${more}`)}`
    const { found, pages } = await pagesOf(
      (from) => path + (from && `&from=${from}`),
      ({ chunk, next_batch }) => ({ events: chunk, next: next_batch }),
    )
    expect(found).toEqual(replies.toReversed())
    expect(pages).toBeGreaterThan(2)
  })

  it('among notifications', async () => {
    const { found, pages } = await pagesOf(
      (from) => `/notifications?limit=500${from && `&from=${from}`}`,
      ({ notifications, next_token }) => ({
        events: notifications.map(({ event }: Json) => event),
        next: next_token,
      }),
    )
    expect(found).toEqual(replies.toReversed())
    expect(pages).toBeGreaterThan(2)
  })

  it('around an event, and around the results of a search, in all', async () => {
    const middle = encodeURIComponent(replies[COUNT / 2]!)
    const context = await bob.call('GET', inRoom(room, `/context/${middle}?limit=1000`))
    expect(JSON.stringify(context).length).toBeLessThan(2 * MAX_EVENT_PAGE_BYTES + 5 * PADDING.length)
    const next = await bob.call('GET', inRoom(room, `/messages?dir=b&limit=1&from=${context.start}`))
    const oldest = context.events_before.at(-1)?.event_id
    expect(idsOf(next.chunk)).toEqual([replies[replies.indexOf(oldest) - 1]])
    const room_events = {
      search_term: 'needle',
      order_by: 'recent',
      filter: { rooms: [room], limit: 10 },
      event_context: { before_limit: 20, after_limit: 20 },
    }
    const search = () => bob.call('POST', '/search', { search_categories: { room_events } })
    const resultsOf = (answer: Json): Json[] => answer.search_categories.room_events.results
    await waitUntil('ten replies to be indexed', async () => resultsOf(await search()).length === 10)
    const found = await search()
    // The results themselves come in any case.
    expect(JSON.stringify(found).length).toBeLessThan(MAX_EVENT_PAGE_BYTES + 14 * PADDING.length)
  })
})

describe('members of a room that is large', () => {
  it('come whole, though they are made while they are sent', async () => {
    const large = await alice.createRoom({ preset: 'public_chat' })
    const people = await Promise.all(Array.from({ length: 12 }, (_, n) => house.person(`member${n}`)))
    const reason = 'y'.repeat(50_000)
    for (const person of people) {
      await person.join(large)
      await person.setState(large, 'm.room.member', { membership: 'join', reason }, person.userId)
    }
    const before = await alice.say(large, 'here')
    await people[0]!.leave(large)
    const all = await alice.call('GET', inRoom(large, '/members'))
    expect(all.chunk).toHaveLength(13)
    expect(new Set(all.chunk.map(({ state_key }: Json) => state_key)).size).toBe(13)
    const joined = await alice.call('GET', inRoom(large, '/members?membership=join'))
    expect(joined.chunk).toHaveLength(12)
    const { start } = await alice.call('GET', inRoom(large, `/context/${encodeURIComponent(before)}?limit=0`))
    const then = await alice.call('GET', inRoom(large, `/members?at=${start}&membership=join`))
    expect(then.chunk).toHaveLength(13)
  })
})
