import { afterAll, beforeAll, expect, it } from 'vitest'
import { type House, inRoom, openHouse, type Person, personOf, textsOf } from '../rooms/people.ts'
import { type Json, login } from '../support/api.ts'

/** Syncs that a message wakes share what is written of a room. Each must get what it alone would get. */
let house: House
let alice: Person
let others: readonly Person[]
let count = 0

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  others = [await house.person('bob'), await house.person('carol'), await house.person('dora')]
})
afterAll(() => house.close())

/** A room of all, and a position after which nothing has happened in it. */
async function commonRoom(): Promise<{ room: string; since: string }> {
  const room = await alice.createRoom({ preset: 'public_chat', name: 'Common' })
  for (const one of others) await one.join(room)
  return { room, since: (await alice.sync()).next_batch }
}

const enc = (value: object): string => encodeURIComponent(JSON.stringify(value))

/** What each gets of a room, one after another: the second and later ones may be given what the first got. */
async function eachGets(people: readonly Person[], room: string, query: string): Promise<Json[]> {
  const sections: Json[] = []
  for (const person of people) sections.push((await person.sync(query)).rooms.join[room])
  return sections
}

const withoutAge = ({ timeline, ...section }: Json): Json => ({
  ...section,
  timeline: {
    ...timeline,
    events: timeline.events.map(({ unsigned: { age, ...unsigned }, ...event }: Json) => ({ ...event, unsigned })),
  },
})

it('everybody who continues from the same place gets the same, with unread counts of their own', async () => {
  const { room, since } = await commonRoom()
  const [bob, carol, dora] = others as [Person, Person, Person]
  const eventId = await alice.say(room, 'one')
  const toCarol = { msgtype: 'm.text', body: 'carol: two', 'm.mentions': { user_ids: [carol.userId] } }
  await alice.call('PUT', inRoom(room, `/send/m.room.message/mention${++count}`), toCarol)
  await dora.call('POST', inRoom(room, `/receipt/m.read/${encodeURIComponent(eventId)}`), {})
  await bob.sync()
  const after = `&since=${since}`
  const sections = await eachGets([bob, carol, bob, carol, dora], room, after)
  const counts = sections.map(({ unread_notifications }) => unread_notifications)
  const [plain, mentioned] = [
    { notification_count: 2, highlight_count: 0 },
    { notification_count: 2, highlight_count: 1 },
  ]
  expect(counts).toEqual([plain, mentioned, plain, mentioned, { notification_count: 1, highlight_count: 0 }])
  const [first, ...rest] = sections.map(({ unread_notifications: _, ephemeral: __, ...section }) => withoutAge(section))
  expect(textsOf(first!.timeline.events)).toEqual(['one', 'carol: two'])
  expect(first).toMatchObject({ state: { events: [] }, timeline: { limited: false } })
  for (const other of rest) expect(other).toEqual(first)
  expect(sections.map(({ ephemeral }) => ephemeral !== undefined)).toEqual([true, true, true, true, true])
})

it('a client gets the transaction ids of what it sent, and no other client does', async () => {
  const { room, since } = await commonRoom()
  const [bob, carol] = others as [Person, Person]
  await bob.call('PUT', inRoom(room, '/send/m.room.message/mine'), { msgtype: 'm.text', body: 'of bob' })
  const phone = personOf(house.api, await login(house.api, bob.userId))
  const sections = await eachGets([carol, alice, bob, phone, carol, bob], room, `&since=${since}`)
  const ids = sections.map(({ timeline }) => timeline.events[0].unsigned.transaction_id)
  expect(ids).toEqual([undefined, undefined, 'mine', undefined, undefined, 'mine'])
})

it('clients with other filters and wishes get what they ask for', async () => {
  const { room, since } = await commonRoom()
  const [bob, carol] = others as [Person, Person]
  await alice.say(room, 'one')
  const ask = (query: string) => eachGets([bob, carol, bob, carol], room, `&since=${since}${query}`)
  for (const section of await ask('')) expect(section.state.events).toEqual([])
  for (const section of await ask('&use_state_after=true')) {
    expect(section.state_after).toEqual({ events: [] })
    expect(section.state).toBeUndefined()
  }
  const fields = enc({ event_fields: ['content.body'] })
  for (const section of await ask(`&filter=${fields}`)) {
    expect(section.timeline.events).toEqual([{ content: { body: 'one' } }])
  }
  const threads = enc({ room: { timeline: { unread_thread_notifications: true } } })
  for (const section of await ask(`&filter=${threads}`)) expect(textsOf(section.timeline.events)).toEqual(['one'])
  const stored = async (person: Person): Promise<string> =>
    (await person.call('POST', `/user/${encodeURIComponent(person.userId)}/filter`, { event_fields: ['content'] }))
      .filter_id
  for (const person of [bob, carol]) {
    const [section] = await eachGets([person], room, `&since=${since}&filter=${await stored(person)}`)
    expect(section!.timeline.events).toEqual([{ content: { msgtype: 'm.text', body: 'one' } }])
  }
  const none = enc({ room: { timeline: { not_senders: [alice.userId] } } })
  for (const person of [bob, carol]) {
    const answer = await person.sync(`&since=${since}&filter=${none}`)
    expect(answer.rooms?.join?.[room]?.timeline?.events ?? []).toEqual([])
  }
})

it('a client that loads members lazily gets a sender whom it was not sent, and once', async () => {
  const { room, since } = await commonRoom()
  const [bob, carol, dora] = others as [Person, Person, Person]
  const filter = enc({ room: { state: { lazy_load_members: true } } })
  await dora.say(room, 'one')
  const query = (from: string) => `&since=${from}&filter=${filter}`
  const answers = [await bob.sync(query(since)), await carol.sync(query(since)), await bob.sync(query(since))]
  const membersIn = (answer: Json): string[] =>
    answer.rooms.join[room].state.events.map(({ state_key }: Json) => state_key)
  expect(answers.map(membersIn)).toEqual([[dora.userId], [dora.userId], [dora.userId]])
  await dora.say(room, 'two')
  const late = personOf(house.api, await login(house.api, alice.userId))
  const next = answers[0].next_batch
  const later = [bob, carol, late, bob, late].map((person) => () => person.sync(query(next)))
  const members: string[][] = []
  for (const sync of later) members.push(membersIn(await sync()))
  expect(members).toEqual([[], [], [dora.userId], [], [dora.userId]])
})

it('who ignores the sender, or was not there, gets no more than they may', async () => {
  const room = await alice.createRoom({
    preset: 'public_chat',
    initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: 'joined' } }],
  })
  for (const one of others) await one.join(room)
  const [bob, carol] = others as [Person, Person]
  const ignoring = await house.person(`ignoring${++count}`)
  await ignoring.join(room)
  const list = { ignored_users: { [alice.userId]: {} } }
  await ignoring.call('PUT', `/user/${encodeURIComponent(ignoring.userId)}/account_data/m.ignored_user_list`, list)
  const late = await house.person(`late${++count}`)
  const { next_batch: since } = await alice.sync()
  await alice.say(room, 'before')
  const shown = await eachGets([bob, carol], room, `&since=${since}`)
  for (const { timeline } of shown) expect(textsOf(timeline.events)).toEqual(['before'])
  const answer = await ignoring.sync(`&since=${since}`)
  expect(textsOf(answer.rooms?.join?.[room]?.timeline?.events ?? [])).toEqual([])
  await late.join(room)
  const [, { timeline }] = (await eachGets([bob, late], room, `&since=${since}`)) as [Json, Json]
  expect(textsOf(timeline.events)).toEqual([])
})

it('what was said or redacted since is shown', async () => {
  const { room, since } = await commonRoom()
  const [bob, carol] = others as [Person, Person]
  const eventId = await alice.say(room, 'one')
  const [first] = await eachGets([bob, carol], room, `&since=${since}`)
  expect(textsOf(first!.timeline.events)).toEqual(['one'])
  await alice.say(room, 'two')
  const [, second] = await eachGets([bob, carol], room, `&since=${since}`)
  expect(textsOf(second!.timeline.events)).toEqual(['one', 'two'])
  await alice.call('PUT', inRoom(room, `/redact/${encodeURIComponent(eventId)}/r${++count}`), {})
  const [, third] = await eachGets([bob, carol], room, `&since=${since}`)
  expect(third!.timeline.events.map(({ content }: Json) => content.body)).toEqual([undefined, 'two', undefined])
})
