import { afterAll, beforeAll, expect, it } from 'vitest'
import { SHARED_FOR_MS } from '../../../src/domain/sync/shared-stretches.ts'
import { type House, inRoom, openHouse, type Person, personOf, textsOf } from '../../rooms/people.ts'
import { type Json, login } from '../../support/api.ts'

/** First syncs share what they read and write of a room for as long as nothing is written to it. Each must see what it alone would see. */

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

/** More than a timeline has, so that all of it is newer than everybody's join. */
const TEXTS = Array.from({ length: 11 }, (_, index) => `text ${index}`)
const FIRST = '/sync?timeout=0'

const timelineOf = (answer: Json, room: string): Json => answer.rooms.join[room].timeline

async function commonRoom(): Promise<string> {
  const room = await alice.createRoom({ preset: 'public_chat', name: 'Common' })
  await bob.join(room)
  for (const text of TEXTS) await alice.say(room, text)
  return room
}

/** As many first syncs as it takes for the later ones to be given what the earlier ones read. */
async function firstSyncs(people: readonly Person[], query = ''): Promise<Json[]> {
  const answers: Json[] = []
  for (const person of people) answers.push(await person.call('GET', FIRST + query))
  return answers
}

const withoutAge = (events: readonly Json[]): Json[] =>
  events.map(({ unsigned: { age, ...unsigned }, ...event }) => ({ ...event, unsigned }))

/** State has no order. */
const inAnyOrder = (state: readonly Json[]): Json[] => state.toSorted((a, b) => (a.event_id < b.event_id ? -1 : 1))

it('everybody who was there is shown the same', async () => {
  const room = await commonRoom()
  const answers = await firstSyncs([bob, bob, bob, bob])
  const [first, ...others] = answers.map((answer) => withoutAge(timelineOf(answer, room).events))
  expect(textsOf(first!)).toEqual(TEXTS.slice(1))
  for (const other of others) expect(other).toEqual(first)
})

it('a client is shown the transaction ids of what it sent, and no other client is', async () => {
  const room = await commonRoom()
  await bob.call('PUT', inRoom(room, '/send/m.room.message/mine'), { msgtype: 'm.text', body: 'of bob' })
  const phone = personOf(house.api, await login(house.api, bob.userId))
  const answers = await firstSyncs([alice, alice, alice, phone, bob, alice])
  const txnIds = answers.map((answer) => timelineOf(answer, room).events.at(-1).unsigned.transaction_id)
  expect(txnIds).toEqual([undefined, undefined, undefined, undefined, 'mine', undefined])
  for (const answer of answers) expect(textsOf(timelineOf(answer, room).events).at(-1)).toBe('of bob')
})

it('who came later is shown only what they may see', async () => {
  const room = await alice.createRoom({
    preset: 'public_chat',
    initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: 'joined' } }],
  })
  await bob.join(room)
  for (const text of TEXTS) await alice.say(room, text)
  const carol = await house.person('carol')
  await carol.join(room)
  await alice.say(room, 'after')
  const answers = await firstSyncs([bob, bob, bob, carol, carol, bob])
  const shown = answers.map((answer) => textsOf(timelineOf(answer, room).events))
  const [all, part] = [[...TEXTS.slice(3), 'after'], ['after']]
  expect(shown).toEqual([all, all, all, part, part, all])
})

it('who was there is shown all, whoever was shown less just before', async () => {
  const joined = { history_visibility: 'joined' }
  const room = await alice.createRoom({
    preset: 'public_chat',
    initial_state: [{ type: 'm.room.history_visibility', content: joined }],
  })
  await bob.join(room)
  for (const text of TEXTS) await alice.say(room, text)
  // A timeline ends where older state would follow hidden state.
  await alice.setState(room, 'm.room.history_visibility', { ...joined, again: true })
  const frida = await house.person('frida')
  await frida.join(room)
  await alice.say(room, 'after')
  const answers = await firstSyncs([frida, frida, bob])
  const shown = answers.map((answer) => textsOf(timelineOf(answer, room).events))
  expect(shown).toEqual([['after'], ['after'], [...TEXTS.slice(4), 'after']])
})

it('nobody is shown whom they ignore, a filter and a limit are kept to', async () => {
  const room = await commonRoom()
  await bob.say(room, 'of bob')
  const dora = await house.person('dora')
  await dora.join(room)
  for (const text of TEXTS) await alice.say(room, text)
  const emil = await house.person('emil')
  await emil.join(room)
  for (const text of TEXTS) await alice.say(room, text)
  await emil.call('PUT', `/user/${encodeURIComponent(emil.userId)}/account_data/m.ignored_user_list`, {
    ignored_users: { [bob.userId]: {} },
  })
  await bob.say(room, 'and bob')
  await firstSyncs([dora, dora, dora])
  const [ignoring] = await firstSyncs([emil])
  expect(textsOf(timelineOf(ignoring!, room).events)).not.toContain('and bob')
  const only = encodeURIComponent(JSON.stringify({ room: { timeline: { types: ['m.room.name'] } } }))
  const [named] = await firstSyncs([dora], `&filter=${only}`)
  expect(timelineOf(named!, room).events.map(({ type }: Json) => type)).toEqual(['m.room.name'])
  const filter = encodeURIComponent(JSON.stringify({ room: { timeline: { limit: 1 } } }))
  const [short] = await firstSyncs([dora], `&filter=${filter}`)
  expect(timelineOf(short!, room)).toMatchObject({ limited: true, events: [{ content: { body: 'and bob' } }] })
})

it('what was said or redacted since is shown', async () => {
  const room = await commonRoom()
  await firstSyncs([bob, bob, bob])
  const last = await alice.say(room, 'four')
  const [later] = await firstSyncs([bob])
  expect(textsOf(timelineOf(later!, room).events).at(-1)).toBe('four')
  await firstSyncs([bob, bob])
  await alice.call('PUT', inRoom(room, `/redact/${encodeURIComponent(last)}/r1`), {})
  const [redacted] = await firstSyncs([bob])
  const event = timelineOf(redacted!, room).events.find(({ event_id }: Json) => event_id === last)
  expect(event.content).toEqual({})
  expect(event.unsigned.redacted_because).toBeDefined()
})

it('relations that came since are bundled', async () => {
  const room = await commonRoom()
  const target = await alice.say(room, 'target')
  await firstSyncs([bob, bob, bob])
  await alice.call('PUT', inRoom(room, '/send/m.room.message/reply'), {
    msgtype: 'm.text',
    body: 'reply',
    'm.relates_to': { rel_type: 'm.thread', event_id: target },
  })
  const filter = encodeURIComponent(JSON.stringify({ room: { timeline: { limit: 2 } } }))
  const answers = await firstSyncs([bob, bob, bob], `&filter=${filter}`)
  for (const answer of answers) {
    const event = timelineOf(answer, room).events.find(({ event_id }: Json) => event_id === target)
    expect(event.unsigned['m.relations']['m.thread'].count).toBe(1)
  }
})

const LAZY = encodeURIComponent(JSON.stringify({ room: { state: { lazy_load_members: true } } }))

it.each([
  ['all state', 'all', 'state', ''],
  ['members lazily', 'lazy', 'state', `&filter=${LAZY}`],
  ['state after the timeline', 'after', 'state_after', `&filter=${LAZY}&use_state_after=true`],
])('everybody is shown the state that they alone would be shown: %s', async (_, word, name, query) => {
  const room = await alice.createRoom({ preset: 'public_chat', name: 'Common', topic: 'All' })
  const gina = await house.person(`gina-${word}`)
  const hugo = await house.person(`hugo-${word}`)
  const ida = await house.person(`ida-${word}`)
  for (const person of [bob, gina, hugo, ida]) await person.join(room)
  // One of them says something, and asks from elsewhere.
  const phone = personOf(house.api, await login(house.api, ida.userId))
  const people = [bob, phone, gina, hugo]
  const sectionOf = (answer: Json): Json => {
    const { timeline, [name]: state, ...rest } = answer.rooms.join[room]
    const { events, ...place } = timeline
    return { ...rest, ...place, shown: withoutAge(events), state: inAnyOrder(withoutAge(state.events)) }
  }
  const alone: Json[] = []
  for (const person of people) {
    // What was written since the last one asked is not known of anybody.
    for (const text of TEXTS) await alice.say(room, text)
    await ida.say(room, 'last')
    const [answer] = await firstSyncs([person], query)
    alone.push(sectionOf(answer!))
  }
  const together = (await firstSyncs([...people, ...people, ...people], query)).map(sectionOf)
  for (const [index, { state, shown }] of together.entries()) {
    expect(state).toEqual(alone[index % people.length]!.state)
    expect(shown).toEqual(alone.at(-1)!.shown)
  }
  const once = together.slice(0, people.length)
  expect(together).toEqual([...once, ...once, ...once])
})

it('ages are counted up to the time of each answer, or of one a moment ago', async () => {
  const room = await commonRoom()
  for (let count = 0; count < 6; count++) {
    const began = Date.now()
    const [answer] = await firstSyncs([bob])
    const { timeline, state } = answer!.rooms.join[room]
    for (const { origin_server_ts, unsigned } of [...timeline.events, ...state.events]) {
      expect(origin_server_ts + unsigned.age).toBeGreaterThanOrEqual(began - SHARED_FOR_MS)
      expect(origin_server_ts + unsigned.age).toBeLessThanOrEqual(Date.now())
    }
  }
})
