import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MAX_STICKY_PER_SENDER } from '../../../src/domain/limits/sticky-events.ts'
import type { Json } from '../../support/api.ts'
import { type Neighbourhood, openNeighbourhood } from '../../support/neighbours.ts'
import { waitUntil } from '../../support/wait.ts'
import { Connection } from '../../sync/sliding/connection.ts'
import { type House, inRoom, openHouse, type Person, personOf } from '../people.ts'

const DURATION = 'org.matrix.msc4354.sticky_duration_ms'
const EXTENSION = 'org.matrix.msc4354.sticky_events'
const SHORT = { room: { timeline: { limit: 1 } } }
const HOUR = 3_600_000

let house: House
let alice: Person
let bob: Person
let room: string
let ahead = 0
let sent = 0

beforeAll(async () => {
  house = await openHouse({ clock: { now: () => Date.now() + ahead } })
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())
beforeEach(async () => {
  room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
})

const path = (type: string, where = room) => inRoom(where, `/send/${type}/s${sent++}`)

async function stick(by: Person, text: string, ms: number | string = 600_000, where = room): Promise<string> {
  const answer = await by.call('PUT', `${path('m.room.message', where)}?${DURATION}=${ms}`, { body: text })
  return answer.event_id
}

async function syncOf(person: Person, since?: string, filter: Json = SHORT): Promise<Json> {
  const query = new URLSearchParams({ filter: JSON.stringify(filter), ...(since && { since }) })
  return person.call('GET', `/sync?${query}`)
}
const sectionOf = (answer: Json, where = room): Json[] => answer.rooms?.join?.[where]?.msc4354_sticky?.events ?? []
const timelineOf = (answer: Json, where = room): Json[] => answer.rooms?.join?.[where]?.timeline.events ?? []
const texts = (events: Json[]): string[] => events.map(({ content }) => content.body)

async function chat(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await alice.say(room, `chat ${n}`)
}

describe('a sticky event', () => {
  it('is announced, and says how long it is sticky', async () => {
    expect((await alice.call('GET', '/_matrix/client/versions')).unstable_features['org.matrix.msc4354']).toBe(true)
    const id = await stick(alice, 'here', 60_000)
    const event = timelineOf(await syncOf(bob)).find(({ event_id }) => event_id === id)
    expect(event.msc4354_sticky).toEqual({ duration_ms: 60_000 })
    expect(event.unsigned.msc4354_sticky_duration_ttl_ms).toBeGreaterThan(0)
    expect(event.unsigned.msc4354_sticky_duration_ttl_ms).toBeLessThanOrEqual(60_000)
  })

  it('is delivered once, behind a timeline that has no place for it', async () => {
    const { next_batch: since } = await syncOf(bob)
    await stick(alice, 'sticky')
    await chat(3)
    const answer = await syncOf(bob, since)
    expect(texts(timelineOf(answer))).toEqual(['chat 2'])
    expect(texts(sectionOf(answer))).toEqual(['sticky'])
    expect(sectionOf(answer)[0].unsigned.msc4354_sticky_duration_ttl_ms).toBeGreaterThan(0)
    await alice.say(room, 'more')
    const later = await syncOf(bob, answer.next_batch)
    expect(sectionOf(later)).toEqual([])
    // What is among the timeline is not there a second time.
    await stick(alice, 'shown')
    const shown = await syncOf(bob, later.next_batch)
    expect([texts(timelineOf(shown)), sectionOf(shown)]).toEqual([['shown'], []])
  })

  it('is delivered although a filter keeps it out of the timeline', async () => {
    await stick(alice, 'filtered')
    const filter = { room: { timeline: { not_types: ['m.room.message'] } } }
    expect(texts(sectionOf(await syncOf(bob, undefined, filter)))).toEqual(['filtered'])
  })

  it('is shown to who joins later, whatever the history visibility', async () => {
    await alice.setState(room, 'm.room.history_visibility', { history_visibility: 'joined' })
    await stick(alice, 'first')
    await stick(bob, 'second')
    await chat(2)
    const carol = await house.person(`carol${sent}`)
    const { next_batch: since } = await syncOf(carol)
    await carol.join(room)
    const answer = await syncOf(carol, since)
    expect(texts(sectionOf(answer))).toEqual(['first', 'second'])
    expect(JSON.stringify(answer)).not.toContain('chat')
  })

  it('is not shown to who ignores its sender', async () => {
    const dave = await house.person(`dave${sent}`)
    await dave.join(room)
    await dave.call('PUT', `/user/${encodeURIComponent(dave.userId)}/account_data/m.ignored_user_list`, {
      ignored_users: { [bob.userId]: {} },
    })
    await stick(bob, 'ignored')
    await stick(alice, 'seen')
    await chat(1)
    expect(texts(sectionOf(await syncOf(dave)))).toEqual(['seen'])
  })

  it('ends with its time, also over a restart', async () => {
    await stick(alice, 'short', 60_000)
    await stick(alice, 'long', HOUR)
    await chat(1)
    expect(texts(sectionOf(await syncOf(bob)))).toEqual(['short', 'long'])
    await house.restart()
    expect(texts(sectionOf(await syncOf(bob)))).toEqual(['short', 'long'])
    ahead += 61_000
    expect(texts(sectionOf(await syncOf(bob)))).toEqual(['long'])
    ahead += HOUR
    expect(sectionOf(await syncOf(bob))).toEqual([])
    await stick(alice, 'at once over', 0)
    await chat(1)
    expect(sectionOf(await syncOf(bob))).toEqual([])
  })

  it('ends with its redaction, also over a restart', async () => {
    const id = await stick(alice, 'regretted')
    await chat(1)
    await alice.call('PUT', inRoom(room, `/redact/${encodeURIComponent(id)}/r${sent++}`), {})
    expect(sectionOf(await syncOf(bob))).toEqual([])
    const event = await bob.call('GET', inRoom(room, `/event/${encodeURIComponent(id)}`))
    expect(event.msc4354_sticky).toBeUndefined()
    await house.restart()
    expect(sectionOf(await syncOf(bob))).toEqual([])
  })

  it('may be sent later', async () => {
    const now = `/_matrix/client/unstable/org.matrix.msc4140/rooms/${encodeURIComponent(room)}/delayed_event`
    const wish = { delay_ms: 10_000, content: { body: 'delayed' } }
    const { delay_id } = await alice.call('PUT', `${now}/m.room.message/d${sent++}?${DURATION}=60000`, wish)
    await alice.call('POST', `/_matrix/client/unstable/org.matrix.msc4140/delayed_events/${delay_id}/send`)
    const state = await alice.ask('PUT', `${now}/m.room.topic/d${sent++}?${DURATION}=60000`, { ...wish, state_key: '' })
    expect(state).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
    const older = `${path('m.room.message')}?org.matrix.msc4140.delay=20000&${DURATION}=60000`
    const { delay_id: id } = await alice.call('PUT', older, { body: 'delayed too' })
    await alice.call('POST', `/_matrix/client/unstable/org.matrix.msc4140/delayed_events/${id}/send`)
    await chat(1)
    expect(texts(sectionOf(await syncOf(bob)))).toEqual(['delayed', 'delayed too'])
  })

  it.each(['3600001', '-1', '1.5', 'long'])('for a time of "%s" is refused', async (ms) => {
    const answer = await alice.ask('PUT', `${path('m.room.message')}?${DURATION}=${ms}`, { body: 'x' })
    expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
  })

  it('gives way to newer ones of its sender, and not to those of others', async () => {
    await stick(bob, 'of bob')
    for (let n = 0; n <= MAX_STICKY_PER_SENDER; n++) await stick(alice, `of alice ${n}`)
    await chat(1)
    const shown = texts(sectionOf(await syncOf(bob)))
    expect(shown).toHaveLength(MAX_STICKY_PER_SENDER + 1)
    expect([shown[0], shown[1], shown.at(-1)]).toEqual(['of bob', 'of alice 1', `of alice ${MAX_STICKY_PER_SENDER}`])
  })
})

describe('in sliding sync', () => {
  const wish = (more: object = {}) => ({
    lists: { all: { range: [0, 9] as const, limit: 1 } },
    extensions: { [EXTENSION]: { enabled: true, ...more } },
  })
  const partOf = (answer: Json): Json => answer.extensions[EXTENSION]
  const inPart = (answer: Json): string[] => texts(partOf(answer)?.rooms[room]?.events ?? [])

  it.each(['merged', 'unstable'] as const)('sticky events come once, page by page (%s)', async (form) => {
    // Others are in rooms with more of them.
    const frank = await house.person(`frank${sent}`)
    await frank.join(room)
    for (const text of ['one', 'two', 'three']) await stick(alice, text)
    await chat(1)
    const connection = new Connection(frank, form)
    const first = await connection.next(wish({ limit: 2 }))
    expect(inPart(first)).toEqual(['one', 'two'])
    expect(partOf(first).rooms[room].events[0].unsigned.msc4354_sticky_duration_ttl_ms).toBeGreaterThan(0)
    const second = await connection.next(wish({ limit: 2, since: partOf(first).next_batch }))
    expect(inPart(second)).toEqual(['three'])
    const since = partOf(second).next_batch
    expect(partOf(await connection.next(wish({ limit: 2, since })))).toBeUndefined()
    await stick(alice, 'four')
    const shown = await connection.next(wish({ limit: 2, since }))
    // It is among the timeline.
    expect(inPart(shown)).toEqual([])
    await stick(alice, 'five')
    await chat(1)
    const last = await connection.next(wish({ limit: 2, since: partOf(shown).next_batch }))
    expect(inPart(last)).toEqual(['five'])
  })

  it('all of a room come to who joins it', async () => {
    await stick(alice, 'from before')
    const erin = await house.person(`erin${sent}`)
    const connection = new Connection(erin, 'merged')
    const first = await connection.next(wish())
    await alice.say(room, 'chat')
    await erin.join(room)
    const answer = await connection.next(wish({ since: partOf(first).next_batch }))
    expect(inPart(answer)).toEqual(['from before'])
  })

  it.each(['x', 7, '1.x', '9'.repeat(400)])('a position of %j is refused', async (since) => {
    const answer = await new Connection(bob, 'merged').ask(wish({ since }))
    expect(answer).toMatchObject({ status: 400, body: { errcode: 'M_INVALID_PARAM' } })
  })
})

describe('between servers', () => {
  let network: Neighbourhood
  beforeAll(() => {
    network = openNeighbourhood()
  })
  afterAll(() => network.close())

  it('sticky events go to those in the room, and to those that come later', async () => {
    const [here, there] = [await network.open(), await network.open()]
    const ann = personOf(here.api, await here.person('ann'))
    const ben = personOf(there.api, await there.person('ben'))
    const shared = await ann.createRoom({ preset: 'public_chat' })
    await stick(ann, 'before the join', 600_000, shared)
    for (let n = 0; n < 3; n++) await ann.say(shared, `chat ${n}`)
    const via = `?server_name=${encodeURIComponent(here.name)}`
    await ben.call('POST', `/join/${encodeURIComponent(shared)}${via}`, {})
    const seen = async (): Promise<string[]> => {
      const answer = await syncOf(ben)
      return texts([...sectionOf(answer, shared), ...timelineOf(answer, shared)])
    }
    await waitUntil('what was sticky before the join', async () => (await seen()).includes('before the join'))
    await stick(ann, 'after the join', 600_000, shared)
    for (let n = 0; n < 3; n++) await ann.say(shared, `more chat ${n}`)
    await waitUntil('what is sticky after the join', async () => {
      const answer = await syncOf(ben)
      return texts(sectionOf(answer, shared)).includes('after the join')
    })
  })
})
