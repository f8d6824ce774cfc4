import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { type House, inRoom, openHouse, type Person, personOf, textsOf } from '../../rooms/people.ts'
import { type Json, login } from '../../support/api.ts'
import { openNeighbourhood } from '../../support/neighbours.ts'
import { waitUntil } from '../../support/wait.ts'

/** After a start, first syncs write most timelines straight from their rows. Everybody must see what they saw before. */
let house: House
let alice: Person
let bob: Person
let phone: Person
let late: Person
let people: readonly Person[]
const rooms: Record<string, string> = {}

const LIMIT = 10
const FEW = Array.from({ length: LIMIT + 2 }, (_, index) => `text ${index}`)

async function room(name: string, request: object = {}): Promise<string> {
  const id = await alice.createRoom({ preset: 'public_chat', name, ...request })
  await bob.join(id)
  for (const text of FEW) await alice.say(id, text)
  rooms[name] = id
  return id
}

const send = (person: Person, id: string, txnId: string, content: object): Promise<Json> =>
  person.call('PUT', inRoom(id, `/send/m.room.message/${txnId}`), { msgtype: 'm.text', body: txnId, ...content })

/** What a first sync shows of the rooms, but for the age of events. */
async function firstSync(person: Person, query: string): Promise<Json> {
  const { rooms } = await person.sync(query)
  // State has no order.
  for (const { state, state_after: after } of Object.values<Json>(rooms.join))
    (state ?? after).events.sort((a: Json, b: Json) => (a.event_id < b.event_id ? -1 : 1))
  return JSON.parse(JSON.stringify(rooms.join), (name, value) => (name === 'age' ? 0 : value))
}

const queryOf = (room: object, more = ''): string => `&filter=${encodeURIComponent(JSON.stringify({ room }))}${more}`

const QUERIES = [
  ['ten events', queryOf({ timeline: { limit: LIMIT } })],
  ['members lazily', queryOf({ timeline: { limit: LIMIT }, state: { lazy_load_members: true } })],
  ['one event', queryOf({ timeline: { limit: 1 }, state: { lazy_load_members: true } })],
  ['no event', queryOf({ timeline: { limit: 0 } })],
  ['more than are read ahead', queryOf({ timeline: { limit: 100 } })],
  ['state after the timeline', queryOf({ timeline: { limit: 3 } }, '&use_state_after=true')],
  ['messages alone', queryOf({ timeline: { limit: 3, types: ['m.room.message'] } })],
] as const

/** What each was shown while all was in memory, by query. */
const before = new Map<string, readonly Json[]>()

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  late = await house.person('late')
  phone = personOf(house.api, await login(house.api, bob.userId))
  await room('usual')
  await room('without a name', { name: undefined })
  await room('named elsewhere', {
    name: undefined,
    initial_state: [{ type: 'm.room.name', state_key: 'x', content: { name: 'x' } }],
  })
  await room('with an alias', { name: undefined, room_alias_name: 'aliased' })
  const spoken = await room('spoken')
  for (const body of ['line\nafter "line"\u2028', 'Grüße 😀', '日本語 \\n \\', '\u0001']) await bob.say(spoken, body)
  await send(phone, await room('of two clients'), 'of-the-phone', {})
  const redacted = await room('redacted')
  const gone = await bob.say(redacted, 'gone')
  await bob.call('PUT', inRoom(redacted, `/redact/${encodeURIComponent(gone)}/gone`), {})
  const related = await room('related')
  const root = await bob.say(related, 'root')
  await send(alice, related, 'reply', { 'm.relates_to': { rel_type: 'm.thread', event_id: root } })
  await send(bob, related, 'edit', { 'm.relates_to': { rel_type: 'm.replace', event_id: root }, 'm.new_content': {} })
  const named = await room('named')
  await alice.setState(named, 'm.room.name', { name: 'Named again' })
  await bob.say(named, 'after')
  const hidden = await room('hidden', {
    initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: 'joined' } }],
  })
  await late.join(hidden)
  await alice.say(hidden, 'for all')
  await late.join(rooms.usual!)
  for (const text of FEW) await bob.say(rooms.usual!, `later ${text}`)
  const small = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(small)
  rooms.small = small
  people = [bob, alice, phone, late]
  for (const [, query] of QUERIES) {
    const answers: Json[] = []
    for (const person of people) answers.push(await firstSync(person, query))
    expect(Object.keys(answers[0]!)).toHaveLength(Object.keys(rooms).length)
    before.set(query, answers)
  }
})
afterAll(() => house.close())

it.each(QUERIES)('everybody is shown after a start what they were shown before: %s', async (_, query) => {
  const known = before.get(query)!
  for (const order of [
    [0, 1, 2, 3, 0, 1, 2, 3, 0],
    [3, 2, 1, 0, 0],
  ]) {
    await house.restart()
    for (const index of order) expect(await firstSync(people[index]!, query)).toEqual(known[index])
  }
  await house.restart()
  const together = await Promise.all(people.map((person) => firstSync(person, query)))
  expect(together).toEqual(known)
})

it('everybody is shown the state that they asked for, whoever asked for another at the same time', async () => {
  const asked = QUERIES.filter(([name]) => /ten|lazily|state/.test(name))
  for (const order of [asked, asked.toReversed()]) {
    await house.restart()
    const shown = await Promise.all(order.flatMap(([, query]) => people.map((person) => firstSync(person, query))))
    expect(shown).toEqual(order.flatMap(([, query]) => before.get(query)!))
  }
})

it('a state event that is redacted after such a first sync is shown redacted', async () => {
  const id = await room('topical', { topic: 'of the day' })
  const query = queryOf({ timeline: { limit: LIMIT }, rooms: [id] })
  const topicOf = async (person: Person) =>
    (await firstSync(person, query))[id].state.events.find(({ type }: Json) => type === 'm.room.topic')
  await house.restart()
  const shown = await topicOf(bob)
  expect([shown.content.topic, await topicOf(alice)]).toEqual(['of the day', shown])
  await alice.call('PUT', inRoom(id, `/redact/${encodeURIComponent(shown.event_id)}/topic`), {})
  for (const person of people.slice(0, 2)) expect((await topicOf(person)).content).toEqual({})
  await house.restart()
  for (const person of people.slice(0, 2)) expect((await topicOf(person)).content).toEqual({})
})

it('what comes after such a first sync is shown once', async () => {
  await house.restart()
  const { next_batch: since } = await bob.sync()
  await alice.say(rooms.usual!, 'new')
  const next = await bob.sync(`&since=${since}`)
  expect(next.rooms.join[rooms.usual!].timeline).toMatchObject({
    limited: false,
    events: [{ content: { body: 'new' } }],
  })
  for (let count = 0; count < 3; count++) {
    const { events } = (await bob.sync()).rooms.join[rooms.usual!].timeline
    expect(textsOf(events).slice(-2)).toEqual([`later ${FEW.at(-1)}`, 'new'])
  }
})

it('what is redacted after it is shown so', async () => {
  const id = rooms.usual!
  const gone = await bob.say(id, 'gone')
  await alice.say(id, 'after')
  await house.restart()
  await bob.sync()
  await bob.call('PUT', inRoom(id, `/redact/${encodeURIComponent(gone)}/later`), {})
  for (let count = 0; count < 3; count++) {
    const { events } = (await bob.sync()).rooms.join[id].timeline
    expect(textsOf(events).slice(-2)).toEqual([undefined, 'after'])
  }
})

it('what people of other servers said is shown, and they with it', async () => {
  const street = openNeighbourhood()
  onTestFinished(() => street.close())
  const [home, away] = [await street.open(), await street.open()]
  const [anna, carl] = [personOf(home.api, await home.person('anna')), personOf(away.api, await away.person('carl'))]
  const id = await anna.createRoom({ preset: 'public_chat', room_alias_name: 'all' })
  await carl.call('POST', `/join/${encodeURIComponent(`#all:${home.name}`)}`, {})
  for (const text of FEW) await carl.say(id, text)
  const query = queryOf({ timeline: { limit: LIMIT }, state: { lazy_load_members: true } })
  const known = await waitUntil('the last one', async () => {
    const shown = await firstSync(anna, query)
    return textsOf(shown[id].timeline.events).at(-1) === FEW.at(-1) && shown
  })
  await home.server.restart()
  for (let count = 0; count < 3; count++) expect(await firstSync(anna, query)).toEqual(known)
  expect(known[id].state.events.map(({ state_key }: Json) => state_key)).toContain(carl.userId)
})

it('events that an earlier release wrote are shown likewise', async () => {
  const [, query] = QUERIES[1]
  const known: Json[] = []
  for (const person of people) known.push(await firstSync(person, query))
  for (const every of [7, 1]) {
    const forget = 'UPDATE event SET content_place = NULL WHERE event_nid % $1 = 0'
    await house.server.database.db.tx((tx) => tx.query(forget, [every]))
    await house.restart()
    for (const [index, person] of people.entries()) expect(await firstSync(person, query)).toEqual(known[index])
  }
})
