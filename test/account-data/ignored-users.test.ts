import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { relate, relationsAt, reply, threadsAt } from '../relations/people.ts'
import { type House, inRoom, openHouse, type Person, textsOf } from '../rooms/people.ts'
import type { Json } from '../support/api.ts'

let house: House
let alice: Person
let bob: Person
let troll: Person
let room: string
let count = 0

beforeAll(async () => {
  house = await openHouse()
})
afterAll(() => house.close())

beforeEach(async () => {
  count++
  alice = await house.person(`alice${count}`)
  bob = await house.person(`bob${count}`)
  troll = await house.person(`troll${count}`)
  room = await bob.createRoom({ preset: 'public_chat' })
  await alice.join(room)
  await troll.join(room)
})

const listAt = (who: Person) => `/user/${encodeURIComponent(who.userId)}/account_data/m.ignored_user_list`
const ignore = (who: Person, ...whom: Person[]) =>
  who.call('PUT', listAt(who), { ignored_users: Object.fromEntries(whom.map(({ userId }) => [userId, {}])) })
const event = (id: string) => inRoom(room, `/event/${encodeURIComponent(id)}`)

describe('an ignored user', () => {
  it('is left out by every reader of messages, at once, while state is shown', async () => {
    const { next_batch: since } = await alice.sync()
    const root = await bob.say(room, 'root')
    const [insult, other] = [await reply(troll, room, root, 'insult'), await reply(bob, room, root, 'friendly')]
    const after = await bob.say(room, 'after')
    await relate(troll, room, root, 'm.reference')
    const last = await reply(troll, room, root, 'insult again')
    await troll.setState(room, 'm.room.member', { membership: 'join', displayname: 'Troll' }, troll.userId)
    await ignore(alice, troll)
    const seen = ['root', 'friendly', 'after']
    const back = await alice.call('GET', inRoom(room, '/messages?dir=b&limit=50'))
    expect(textsOf(back.chunk).toReversed()).toEqual(seen)
    expect(back.chunk.some(({ content }: Json) => content.displayname === 'Troll')).toBe(true)
    expect(textsOf((await alice.call('GET', inRoom(room, '/messages?dir=f&limit=50'))).chunk)).toEqual(seen)
    const context = await alice.call('GET', inRoom(room, `/context/${encodeURIComponent(other)}`))
    expect(textsOf([...context.events_before, ...context.events_after])).toEqual(['root', 'after'])
    for (const id of [insult, last]) {
      expect((await alice.ask('GET', event(id))).status).toBe(404)
      expect((await alice.ask('GET', inRoom(room, `/context/${encodeURIComponent(id)}`))).status).toBe(404)
      expect((await alice.ask('GET', relationsAt(room, id))).status).toBe(404)
    }
    expect(textsOf((await alice.call('GET', relationsAt(room, root))).chunk)).toEqual(['friendly'])
    const bundle = (await alice.call('GET', event(root))).unsigned['m.relations']
    expect(bundle).toMatchObject({ 'm.thread': { count: 1, latest_event: { event_id: other } } })
    expect(bundle['m.reference']).toBeUndefined()
    const incremental = await alice.sync(`&since=${since}`)
    const timelines = [incremental, await alice.sync()].map(({ rooms }) => rooms.join[room].timeline.events)
    for (const events of timelines) {
      expect(textsOf(events).filter((text) => seen.includes(text))).toEqual(seen)
      expect(textsOf(events).some((text) => text.startsWith('insult'))).toBe(false)
    }
    expect(timelines[0].some(({ content }: Json) => content.displayname === 'Troll')).toBe(true)
    const preview = await alice.call('GET', inRoom(room, '/initialSync?limit=50'))
    expect(textsOf(preview.messages.chunk)).toEqual(seen)
    const polled = await alice.call('GET', `/events?timeout=0&from=${encodeURIComponent(since)}`)
    expect(textsOf(polled.chunk)).toEqual(seen)
    const { notifications } = await alice.call('GET', '/notifications?limit=50')
    expect(textsOf(notifications.map(({ event }: Json) => event))).toEqual(seen.toReversed())
    expect(textsOf((await bob.call('GET', inRoom(room, '/messages?dir=f&limit=50'))).chunk)).toContain('insult')
    expect(after).toEqual(expect.any(String))
  })

  it('begins threads that are listed without what they say', async () => {
    const root = await troll.say(room, 'provocation')
    await reply(bob, room, root)
    await ignore(alice, troll)
    const { chunk } = await alice.call('GET', threadsAt(room))
    expect(chunk).toMatchObject([{ event_id: root, sender: troll.userId, content: {} }])
    expect(chunk[0].unsigned['m.relations']['m.thread'].count).toBe(1)
  })

  it('cannot invite: neither an old nor a new invitation is shown, also beside one of somebody else (S#11506)', async () => {
    const before = await troll.createRoom()
    await troll.invite(before, alice)
    await ignore(alice, troll)
    const { next_batch: since } = await alice.sync()
    const [after, friendly] = [await troll.createRoom(), await bob.createRoom()]
    await troll.invite(after, alice)
    await bob.invite(friendly, alice)
    for (const query of ['', `&since=${since}`]) {
      expect(Object.keys((await alice.sync(query)).rooms.invite)).toEqual([friendly])
    }
  })

  it('is not seen to read, to type or to be there', async () => {
    await ignore(alice, troll)
    const { next_batch: since } = await alice.sync()
    const { next_batch: bobs } = await bob.sync()
    const said = await bob.say(room, 'read me')
    await troll.call('POST', inRoom(room, `/receipt/m.read/${encodeURIComponent(said)}`), {})
    await troll.call('PUT', inRoom(room, `/typing/${encodeURIComponent(troll.userId)}`), {
      typing: true,
      timeout: 30_000,
    })
    await troll.call('PUT', `/presence/${encodeURIComponent(troll.userId)}/status`, {
      presence: 'online',
      status_msg: 'x',
    })
    const shown = ({ presence, rooms }: Json) => JSON.stringify([presence, rooms.join[room].ephemeral])
    expect(shown(await bob.sync(`&since=${bobs}`))).toContain(troll.userId)
    expect(shown(await alice.sync(`&since=${since}`))).not.toContain(troll.userId)
    const first = await alice.sync()
    expect(JSON.stringify([first.presence, first.rooms.join[room].ephemeral ?? null])).not.toContain(troll.userId)
  })

  it('who is not ignored any more is shown again, from then on', async () => {
    await ignore(alice, troll)
    await troll.say(room, 'unheard')
    const { next_batch: since } = await alice.sync()
    await ignore(alice)
    await troll.say(room, 'heard')
    const { rooms } = await alice.sync(`&since=${since}`)
    expect(textsOf(rooms.join[room].timeline.events)).toEqual(['heard'])
  })

  it('stays ignored over a restart, and over a change of the list', async () => {
    await ignore(alice, troll)
    await troll.say(room, 'before')
    await house.restart()
    expect(textsOf((await alice.call('GET', inRoom(room, '/messages?dir=f&limit=50'))).chunk)).toEqual([])
    await ignore(alice, troll, bob)
    await bob.say(room, 'bob too')
    expect(textsOf((await alice.call('GET', inRoom(room, '/messages?dir=f&limit=50'))).chunk)).toEqual([])
    const unstable = '/_matrix/client/unstable/org.matrix.msc3391'
    await alice.call('DELETE', unstable + listAt(alice))
    expect(textsOf((await alice.call('GET', inRoom(room, '/messages?dir=f&limit=50'))).chunk)).toEqual([
      'before',
      'bob too',
    ])
  })

  it('is nobody, if the list is malformed or names its owner', async () => {
    await troll.say(room, 'heard')
    await alice.say(room, 'own')
    const lists = [
      { ignored_users: [troll.userId] },
      { ignored_users: troll.userId },
      {},
      { ignored_users: { [alice.userId]: {}, 'no id': 1 } },
    ]
    for (const list of lists) {
      await alice.call('PUT', listAt(alice), list)
      expect(textsOf((await alice.call('GET', inRoom(room, '/messages?dir=f&limit=50'))).chunk)).toEqual([
        'heard',
        'own',
      ])
    }
  })

  it('does not count as unread, nor stand out', async () => {
    await ignore(alice, troll)
    await bob.say(room, 'counted')
    await troll.say(room, 'not counted')
    const mention = { msgtype: 'm.text', body: 'you', 'm.mentions': { user_ids: [alice.userId] } }
    await troll.call('POST', inRoom(room, '/send/m.room.message'), mention)
    const counts = async () => (await alice.sync()).rooms.join[room].unread_notifications
    expect(await counts()).toEqual({ notification_count: 1, highlight_count: 0 })
    await house.restart()
    expect(await counts()).toEqual({ notification_count: 1, highlight_count: 0 })
    await ignore(alice)
    await troll.say(room, 'counted again')
    await troll.call('POST', inRoom(room, '/send/m.room.message'), mention)
    expect(await counts()).toEqual({ notification_count: 3, highlight_count: 1 })
  })

  it('does not wake a sync that has nothing to show', async () => {
    await ignore(alice, troll)
    const { next_batch: since } = await alice.sync()
    await troll.say(room, 'unheard')
    const answer = await alice.sync(`&since=${since}`)
    expect(answer.rooms?.join?.[room]?.timeline?.events ?? []).toEqual([])
  })
})
