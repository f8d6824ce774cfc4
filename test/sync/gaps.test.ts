import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { type House, idsOf, inRoom, openHouse, type Person, textsOf } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

const filterOf = (filter: object): string => `&filter=${encodeURIComponent(JSON.stringify(filter))}`
const LAZY = filterOf({ room: { state: { lazy_load_members: true }, timeline: { limit: 1 } } })

async function sharedRoom(request: object = {}): Promise<string> {
  const room = await alice.createRoom({ preset: 'public_chat', ...request })
  await bob.join(room)
  return room
}

const visibleTo = (history_visibility: string) => [
  { type: 'm.room.history_visibility', content: { history_visibility } },
]

/** What a client that got these answers, in order, believes a piece of a room's state to be. */
function believed(answers: readonly Json[], room: string, type: string, stateKey = ''): Json {
  const events = answers.flatMap(({ rooms }) => {
    const section = rooms?.join?.[room] ?? rooms?.leave?.[room]
    return section ? [...section.state.events, ...section.timeline.events] : []
  })
  return events.findLast((event) => event.type === type && event.state_key === stateKey)?.content
}

describe('what was hidden while one was away', () => {
  it('is told as state, and passed over in the timeline', async () => {
    const room = await sharedRoom({ name: 'Old', initial_state: visibleTo('joined') })
    const first = await bob.sync()
    await alice.say(room, 'before')
    await bob.leave(room)
    await alice.setState(room, 'm.room.name', { name: 'New' })
    await bob.join(room)
    await alice.say(room, 'after')
    const second = await bob.sync(`&since=${first.next_batch}`)
    expect(believed([first, second], room, 'm.room.name')).toEqual({ name: 'New' })
    expect(second.rooms.join[room].timeline.limited).toBe(false)
    expect(textsOf(second.rooms.join[room].timeline.events)).toEqual(['before', 'after'])
  })

  it('leaves no hole in the state told to who has just come', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', name: 'Old' })
    await alice.say(room, 'shared')
    await alice.setState(room, 'm.room.history_visibility', { history_visibility: 'joined' })
    await alice.setState(room, 'm.room.name', { name: 'New' })
    const { next_batch: since } = await bob.sync()
    await bob.join(room)
    const answer = await bob.sync(`&since=${since}${filterOf({ room: { timeline: { limit: 50 } } })}`)
    expect(believed([answer], room, 'm.room.name')).toEqual({ name: 'New' })
  })
})

/** A room whose history is hidden from who is away: what was said before, hidden from bob meanwhile, and said after. */
async function roomWithHiddenPart(hidden: (room: string) => Promise<unknown>): Promise<string> {
  const room = await sharedRoom({ name: 'Old', initial_state: visibleTo('joined') })
  await alice.say(room, 'before')
  await bob.leave(room)
  await hidden(room)
  await bob.join(room)
  await alice.say(room, 'after')
  return room
}

const timelineOf = (limit: number): string => filterOf({ room: { timeline: { limit } } })

test('B5: a timeline passes over what is hidden and goes on to what is not, in a first sync and in messages', async () => {
  const room = await roomWithHiddenPart(async (hidden) => {
    for (let i = 0; i < 30; i++) await alice.say(hidden, `hidden ${i}`)
  })
  const { timeline } = (await bob.sync(timelineOf(4))).rooms.join[room]
  expect(textsOf(timeline.events)).toEqual(['before', 'after'])
  expect(timeline.events.map(({ content }: Json) => content.membership ?? content.body)).toEqual([
    'before',
    'leave',
    'join',
    'after',
  ])
  expect(timeline.limited).toBe(true)
  const { chunk } = await bob.call('GET', inRoom(room, `/messages?dir=b&limit=2&from=${timeline.prev_batch}`))
  const next = await bob.sync(timelineOf(6))
  expect(idsOf(next.rooms.join[room].timeline.events).slice(0, 2)).toEqual(idsOf(chunk).reverse())
})

test('B5: the limit of a timeline counts what is shown, and what is hidden makes no gap', async () => {
  const first = await bob.sync()
  const room = await roomWithHiddenPart(async (hidden) => {
    for (let i = 0; i < 30; i++) await alice.say(hidden, `hidden ${i}`)
  })
  const { timeline } = (await bob.sync(`&since=${first.next_batch}${timelineOf(1000)}`)).rooms.join[room]
  expect(timeline.limited).toBe(false)
  expect(timeline.events[0].type).toBe('m.room.create')
  expect(textsOf(timeline.events)).toEqual(['before', 'after'])
})

test('B5: a timeline ends after state that was set again out of sight', async () => {
  const room = await sharedRoom({ name: 'Old', initial_state: visibleTo('joined') })
  const first = await bob.sync()
  await alice.say(room, 'first')
  await alice.setState(room, 'm.room.name', { name: 'Seen' })
  await alice.say(room, 'before')
  await bob.leave(room)
  await alice.setState(room, 'm.room.name', { name: 'New' })
  await bob.join(room)
  await alice.say(room, 'after')
  const second = await bob.sync(`&since=${first.next_batch}${timelineOf(1000)}`)
  expect(believed([first, second], room, 'm.room.name')).toEqual({ name: 'New' })
  expect(second.rooms.join[room].timeline.limited).toBe(true)
  expect(textsOf(second.rooms.join[room].timeline.events)).toEqual(['before', 'after'])
})

test('B5: who comes to a room that shows nothing of before gets no hidden event, however long its history is', async () => {
  const room = await alice.createRoom({ preset: 'public_chat', initial_state: visibleTo('joined') })
  for (let i = 0; i < 80; i++) await alice.say(room, `hidden ${i}`)
  await bob.join(room)
  const { timeline } = (await bob.sync(timelineOf(20))).rooms.join[room]
  expect(textsOf(timeline.events)).toEqual([])
  expect(timeline.events.at(-1)).toMatchObject({ type: 'm.room.member', state_key: bob.userId })
  expect(timeline.events[0].type).toBe('m.room.create')
})

test.each([
  ['is filtered', { types: ['m.room.message'] }],
  ['is limited to nothing', { limit: 0 }],
  ['has none of the room', (room: string) => ({ not_rooms: [room] })],
] as const)('B5: the own leave is in the state of a left room whose timeline %s', async (_how, given) => {
  const room = await sharedRoom()
  const filter = filterOf({
    room: { include_leave: true, timeline: typeof given === 'function' ? given(room) : given },
  })
  const { next_batch: since } = await bob.sync(filter)
  await alice.say(room, 'seen')
  await bob.leave(room)
  await alice.say(room, 'unseen')
  for (const token of [`&since=${since}`, '']) {
    const { timeline, state } = (await bob.sync(`${token}${filter}`)).rooms.leave[room]
    const own = state.events.filter(({ state_key: key }: Json) => key === bob.userId)
    expect(own.map(({ content }: Json) => content.membership)).toEqual(['leave'])
    expect(textsOf(timeline.events)).not.toContain('unseen')
    expect(timeline.events.filter(({ type }: Json) => type === 'm.room.member')).toEqual([])
  }
})

test('B5: the own leave is in the state once, and as it is now, where a ban followed a kick', async () => {
  const room = await sharedRoom()
  const { next_batch: since } = await bob.sync()
  await alice.call('POST', inRoom(room, '/kick'), { user_id: bob.userId })
  await alice.call('POST', inRoom(room, '/ban'), { user_id: bob.userId })
  const filter = filterOf({ room: { timeline: { types: ['m.room.message'] } } })
  const { state } = (await bob.sync(`&since=${since}${filter}`)).rooms.leave[room]
  const own = state.events.filter(({ state_key: key }: Json) => key === bob.userId)
  expect(own.map(({ content }: Json) => content.membership)).toEqual(['ban'])
})

test('B5: an invitation that is declined is told when the timeline is filtered', async () => {
  const room = await alice.createRoom({ preset: 'private_chat', invite: [bob.userId] })
  const { next_batch: since } = await bob.sync()
  await bob.leave(room)
  const filter = filterOf({ room: { timeline: { types: ['m.room.message'] } } })
  const { state, timeline } = (await bob.sync(`&since=${since}${filter}`)).rooms.leave[room]
  expect(timeline.events).toEqual([])
  expect(state.events).toMatchObject([{ state_key: bob.userId, content: { membership: 'leave' } }])
})

test('B5: who left long ago is told how in a first sync, whatever was said in the room since', async () => {
  const room = await sharedRoom()
  await bob.leave(room)
  for (let i = 0; i < 150; i++) await alice.say(room, `${i}`)
  const filter = filterOf({ room: { include_leave: true, timeline: { limit: 1 } } })
  const { timeline } = (await bob.sync(filter)).rooms.leave[room]
  expect(timeline.events).toMatchObject([{ state_key: bob.userId, content: { membership: 'leave' } }])
})

describe('members loaded lazily', () => {
  it('are told again when they have changed in a gap', async () => {
    const room = await sharedRoom()
    await alice.say(room, 'hi')
    const first = await bob.sync(LAZY)
    await alice.setState(room, 'm.room.member', { membership: 'join', displayname: 'Queen' }, alice.userId)
    await alice.say(room, 'one')
    await alice.say(room, 'two')
    const second = await bob.sync(`&since=${first.next_batch}${LAZY}`)
    expect(believed([first, second], room, 'm.room.member', alice.userId)).toMatchObject({ displayname: 'Queen' })
    await alice.say(room, 'three')
    const third = await bob.sync(`&since=${second.next_batch}${LAZY}`)
    expect(third.rooms.join[room].state.events).toEqual([])
  })

  it('include those after whom a nameless room is called', async () => {
    const room = await sharedRoom()
    const carol = await house.person('carol')
    await carol.join(room)
    await alice.say(room, 'hi')
    const { rooms } = await bob.sync(LAZY)
    const shown = rooms.join[room].state.events.map(({ state_key }: Json) => state_key)
    expect(rooms.join[room].summary['m.heroes']).toContain(carol.userId)
    expect(shown).toEqual(expect.arrayContaining(rooms.join[room].summary['m.heroes']))
  })

  it('are counted again after a gap that held members alone', async () => {
    const room = await sharedRoom({ name: 'Named' })
    const first = await bob.sync(LAZY)
    const dora = await house.person('dora')
    await dora.join(room)
    await alice.say(room, 'hi')
    const second = await bob.sync(`&since=${first.next_batch}${LAZY}`)
    expect(second.rooms.join[room].summary).toMatchObject({ 'm.joined_member_count': 3 })
  })
})

const membersShown = (answer: Json, room: string): string[] =>
  answer.rooms.join[room].state.events
    .filter(({ type }: Json) => type === 'm.room.member')
    .map(({ state_key, content }: Json) => `${state_key} ${content.membership}`)
    .toSorted()

test('B2: lazy loading tells all members that changed in a gap, also those who said nothing', async () => {
  const room = await sharedRoom()
  const [banned, leaver, comer] = await Promise.all(['banned', 'leaver', 'comer'].map((name) => house.person(name)))
  await banned!.join(room)
  await leaver!.join(room)
  const { next_batch: since } = await bob.sync(LAZY)
  await alice.call('POST', inRoom(room, '/ban'), { user_id: banned!.userId })
  await leaver!.leave(room)
  await comer!.join(room)
  for (const text of ['one', 'two']) await alice.say(room, text)
  const answer = await bob.sync(`&since=${since}${LAZY}`)
  expect(answer.rooms.join[room].timeline.limited).toBe(true)
  expect(membersShown(answer, room)).toEqual(
    expect.arrayContaining([`${banned!.userId} ban`, `${leaver!.userId} leave`, `${comer!.userId} join`].toSorted()),
  )
})

test('B2: lazy loading tells the members that changed in a gap when the full state is asked for', async () => {
  const room = await sharedRoom()
  const gone = await house.person('gone')
  await gone.join(room)
  const { next_batch: since } = await bob.sync(LAZY)
  await gone.leave(room)
  for (const text of ['one', 'two']) await alice.say(room, text)
  const answer = await bob.sync(`&since=${since}&full_state=true${LAZY}`)
  expect(membersShown(answer, room)).toContain(`${gone.userId} leave`)
})

test('B2: a sync that is repeated with the same token gives the same members again', async () => {
  const room = await sharedRoom({ name: 'Named' })
  const speaker = await house.person('speaker')
  await speaker.join(room)
  await alice.say(room, 'quiet')
  const first = await bob.sync(LAZY)
  await speaker.say(room, 'hello')
  const query = `&since=${first.next_batch}${LAZY}`
  const lost = await bob.sync(query)
  expect(membersShown(lost, room)).toEqual([`${speaker.userId} join`])
  const second = await bob.sync(query)
  expect(membersShown(second, room)).toEqual(membersShown(lost, room))
  await speaker.say(room, 'again')
  const third = await bob.sync(`&since=${second.next_batch}${LAZY}`)
  expect(membersShown(third, room)).toEqual([])
})

test('B2: a member told in an answer that was lost is told again once somebody else has spoken', async () => {
  const room = await sharedRoom({ name: 'Named' })
  const speaker = await house.person('once')
  await speaker.join(room)
  await alice.say(room, 'quiet')
  const first = await bob.sync(LAZY)
  await speaker.say(room, 'hello')
  await bob.sync(`&since=${first.next_batch}${LAZY}`)
  await alice.say(room, 'between')
  const second = await bob.sync(`&since=${first.next_batch}${LAZY}`)
  expect(membersShown(second, room)).toEqual([])
  await speaker.say(room, 'again')
  const third = await bob.sync(`&since=${second.next_batch}${LAZY}`)
  expect(membersShown(third, room)).toEqual([`${speaker.userId} join`])
})

describe('a room whose name was taken away', () => {
  it('is called after its members again', async () => {
    const room = await sharedRoom({ name: 'Named' })
    const first = await bob.sync()
    expect(first.rooms.join[room].summary['m.heroes']).toBeUndefined()
    await alice.setState(room, 'm.room.name', {})
    const second = await bob.sync(`&since=${first.next_batch}`)
    expect(second.rooms.join[room].summary['m.heroes']).toEqual([alice.userId])
  })
})

describe('a room that is new to a client', () => {
  it('comes with what its user keeps for it, and with the receipts in it', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    const said = await alice.say(room, 'hi')
    await alice.call('POST', inRoom(room, `/receipt/m.read/${encodeURIComponent(said)}`), {})
    await bob.call('PUT', `/user/${encodeURIComponent(bob.userId)}${inRoom(room, '/account_data/m.tag')}`, { tags: {} })
    const { next_batch: since } = await bob.sync()
    await bob.join(room)
    const { rooms } = await bob.sync(`&since=${since}`)
    expect(rooms.join[room].account_data.events).toEqual([{ type: 'm.tag', content: { tags: {} } }])
    expect(rooms.join[room].ephemeral.events).toEqual([
      { type: 'm.receipt', content: { [said]: { 'm.read': { [alice.userId]: { ts: expect.any(Number) } } } } },
    ])
  })
})

describe('leaving in several steps between two syncs', () => {
  it('shows what was said before a kick that a ban followed, and nothing of what came between', async () => {
    const room = await sharedRoom({ name: 'Old' })
    const first = await bob.sync()
    await alice.say(room, 'before')
    await alice.call('POST', inRoom(room, '/kick'), { user_id: bob.userId })
    await alice.say(room, 'between')
    await alice.setState(room, 'm.room.name', { name: 'Secret' })
    await alice.call('POST', inRoom(room, '/ban'), { user_id: bob.userId })
    const { rooms } = await bob.sync(`&since=${first.next_batch}`)
    const { timeline, state } = rooms.leave[room]
    expect(textsOf(timeline.events)).toEqual(['before'])
    expect(timeline.events.at(-1).content.membership).toBe('ban')
    expect(JSON.stringify([timeline, state])).not.toContain('Secret')
  })

  it('tells the whole state of a room that was joined and left', async () => {
    const room = await alice.createRoom({ preset: 'public_chat', name: 'Brief' })
    const { next_batch: since } = await bob.sync()
    await bob.join(room)
    await alice.say(room, 'hello and goodbye')
    await bob.leave(room)
    const limit = filterOf({ room: { timeline: { limit: 2 } } })
    const { rooms } = await bob.sync(`&since=${since}${limit}`)
    expect(rooms.leave[room].state.events.map(({ type }: Json) => type)).toContain('m.room.name')
  })
})
