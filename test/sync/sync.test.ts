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

async function sharedRoom(request: object = {}): Promise<string> {
  const room = await alice.createRoom({ preset: 'public_chat', ...request })
  await bob.join(room)
  return room
}

/** A sync that waits, and how long it took. */
async function longPoll(person: Person, since: string, timeoutMs: number): Promise<{ body: Json; tookMs: number }> {
  const begun = performance.now()
  const body = await person.call('GET', `/sync?timeout=${timeoutMs}&since=${since}`)
  return { body, tookMs: performance.now() - begun }
}

describe('long polls', () => {
  it('wake at once when somebody speaks, and carry what was said', async () => {
    const room = await sharedRoom()
    const { next_batch: since } = await bob.sync()
    const waiting = longPoll(bob, since, 20_000)
    await alice.say(room, 'hello')
    const { body, tookMs } = await waiting
    expect(textsOf(body.rooms.join[room].timeline.events)).toEqual(['hello'])
    expect(tookMs).toBeLessThan(15_000)
  })

  it('wake for invitations, account data, typing and receipts', async () => {
    const room = await sharedRoom()
    const said = await alice.say(room, 'read me')
    let since = (await alice.sync()).next_batch
    const next = async (act: () => Promise<unknown>): Promise<Json> => {
      const waiting = longPoll(alice, since, 20_000)
      await act()
      const { body } = await waiting
      since = body.next_batch
      return body
    }
    const invited = await next(async () => bob.createRoom({ invite: [alice.userId], name: 'Tea' }))
    const [invitation] = Object.values<Json>(invited.rooms.invite)
    expect(invitation.invite_state.events).toContainEqual(
      expect.objectContaining({ type: 'm.room.name', content: { name: 'Tea' } }),
    )
    expect(invitation.invite_state.events).toContainEqual(
      expect.objectContaining({ type: 'm.room.member', state_key: alice.userId }),
    )

    const kept = await next(() =>
      alice.call('PUT', `/user/${encodeURIComponent(alice.userId)}/account_data/test.kept`, { a: 1 }),
    )
    expect(kept.account_data.events).toEqual([{ type: 'test.kept', content: { a: 1 } }])

    const typing = await next(() =>
      bob.call('PUT', inRoom(room, `/typing/${encodeURIComponent(bob.userId)}`), { typing: true, timeout: 20_000 }),
    )
    expect(typing.rooms.join[room].ephemeral.events).toEqual([
      { type: 'm.typing', content: { user_ids: [bob.userId] } },
    ])

    const read = await next(() => bob.call('POST', inRoom(room, `/receipt/m.read/${encodeURIComponent(said)}`), {}))
    const receipt = read.rooms.join[room].ephemeral.events.find(({ type }: Json) => type === 'm.receipt')
    expect(receipt.content[said]['m.read'][bob.userId].ts).toBeTypeOf('number')
  })

  it('end by themselves when nothing happens, with a token that goes on', async () => {
    const quiet = await house.person('quiet')
    const first = await quiet.sync()
    const { next_batch: since } = await quiet.call('GET', `/sync?since=${first.next_batch}&timeout=0`)
    const { body, tookMs } = await longPoll(quiet, since, 300)
    expect(tookMs).toBeGreaterThanOrEqual(290)
    expect(body.rooms).toBeUndefined()
    expect(body.next_batch).toMatch(/^s/)
  })
})

describe('timelines', () => {
  it('give each event once over a chain of tokens', async () => {
    const room = await sharedRoom()
    let since = (await bob.sync()).next_batch
    const seen: string[] = []
    const sent: string[] = []
    for (let round = 0; round < 5; round++) {
      const some = await Promise.all([0, 1, 2].map((i) => alice.say(room, `${round}-${i}`)))
      sent.push(...some)
      const body = await bob.call('GET', `/sync?timeout=5000&since=${since}`)
      since = body.next_batch
      seen.push(...idsOf(body.rooms.join[room].timeline.events))
    }
    expect(seen.toSorted()).toEqual(sent.toSorted())
  })

  it('are cut at the limit, tell the state that the gap holds, and can be read back from prev_batch', async () => {
    const room = await sharedRoom()
    const { next_batch: since } = await bob.sync()
    await alice.setState(room, 'm.room.topic', { topic: 'in the gap' })
    for (let i = 0; i < 6; i++) await alice.say(room, `m${i}`)
    const body = await bob.sync(`&since=${since}${filterOf({ room: { timeline: { limit: 2 } } })}`)
    const { timeline, state } = body.rooms.join[room]
    expect(textsOf(timeline.events)).toEqual(['m4', 'm5'])
    expect(timeline.limited).toBe(true)
    expect(state.events.map(({ type, content }: Json) => [type, content])).toEqual([
      ['m.room.topic', { topic: 'in the gap' }],
    ])
    const back = await bob.call('GET', inRoom(room, `/messages?dir=b&limit=4&from=${timeline.prev_batch}`))
    expect(textsOf(back.chunk)).toEqual(['m3', 'm2', 'm1', 'm0'])
  })

  it('put the state before the timeline: what the timeline sets is not in it', async () => {
    const room = await sharedRoom({ topic: 'before' })
    await alice.say(room, 'between')
    await alice.setState(room, 'm.room.topic', { topic: 'after' })
    const body = await bob.sync(filterOf({ room: { timeline: { limit: 1 } } }))
    const { timeline, state } = body.rooms.join[room]
    expect(timeline.events[0].content.topic).toBe('after')
    expect(timeline.events[0].unsigned.prev_content.topic).toBe('before')
    const topics = state.events.filter(({ type }: Json) => type === 'm.room.topic')
    expect(topics.map(({ content }: Json) => content.topic)).toEqual(['before'])
  })

  it('tell the state after the timeline to those who ask for it', async () => {
    const room = await sharedRoom({ topic: 'before' })
    const { next_batch: since } = await bob.sync()
    await alice.setState(room, 'm.room.topic', { topic: 'after' })
    const body = await bob.sync(`&since=${since}&use_state_after=true`)
    expect(body.rooms.join[room].state).toBeUndefined()
    expect(body.rooms.join[room].state_after.events.map(({ content }: Json) => content.topic)).toEqual(['after'])
  })

  it('tell the whole state again on full_state, and all of it to who has just joined', async () => {
    const room = await sharedRoom({ name: 'Hall' })
    const { next_batch: since } = await bob.sync()
    const full = await bob.sync(`&since=${since}&full_state=true`)
    expect(full.rooms.join[room].state.events.map(({ type }: Json) => type)).toContain('m.room.name')
    const carol = await house.person('carol')
    const before = (await carol.sync()).next_batch
    await carol.join(room)
    const { state, timeline } = (await carol.sync(`&since=${before}${filterOf({ room: { timeline: { limit: 1 } } })}`))
      .rooms.join[room]
    expect(state.events.map(({ type }: Json) => type)).toEqual(expect.arrayContaining(['m.room.create', 'm.room.name']))
    expect(timeline.events[0].state_key).toBe(carol.userId)
  })

  it('tell only the sending client its transaction id', async () => {
    const room = await sharedRoom()
    const since = (await alice.sync()).next_batch
    const other = (await bob.sync()).next_batch
    await alice.call('PUT', inRoom(room, '/send/m.room.message/mine'), { msgtype: 'm.text', body: 'x' })
    const [own] = (await alice.sync(`&since=${since}`)).rooms.join[room].timeline.events
    const [others] = (await bob.sync(`&since=${other}`)).rooms.join[room].timeline.events
    expect(own.unsigned.transaction_id).toBe('mine')
    expect(others.unsigned.transaction_id).toBeUndefined()
  })
})

describe('leaving', () => {
  it('shows what happened up to a kick and nothing after', async () => {
    const room = await sharedRoom()
    const { next_batch: since } = await bob.sync()
    await alice.say(room, 'before')
    await alice.call('POST', inRoom(room, '/kick'), { user_id: bob.userId, reason: 'rest' })
    await alice.say(room, 'after')
    const body = await bob.sync(`&since=${since}`)
    const { timeline } = body.rooms.leave[room]
    expect(textsOf(timeline.events)).toEqual(['before'])
    expect(timeline.events.at(-1).content).toMatchObject({ membership: 'leave', reason: 'rest' })
    const later = await bob.sync(`&since=${body.next_batch}`)
    expect(later.rooms).toBeUndefined()
    const wanting = await bob.sync(filterOf({ room: { include_leave: true, rooms: [room] } }))
    expect(Object.keys(wanting.rooms.leave)).toEqual([room])
  })

  it('shows a rejected invitation as left, with nothing of the room', async () => {
    const room = await alice.createRoom({ preset: 'private_chat', invite: [bob.userId] })
    await alice.say(room, 'secret')
    const { next_batch: since } = await bob.sync()
    await bob.leave(room)
    const { timeline, state } = (await bob.sync(`&since=${since}`)).rooms.leave[room]
    expect(timeline.events.map(({ type }: Json) => type)).toEqual(['m.room.member'])
    expect(state.events).toEqual([])
  })
})

describe('filters', () => {
  it('choose types, senders, rooms and fields; by id as well as inline', async () => {
    const room = await sharedRoom()
    const other = await sharedRoom()
    const { next_batch: since } = await bob.sync()
    await alice.say(room, 'from alice')
    await bob.say(room, 'from bob')
    await alice.setState(room, 'm.room.name', { name: 'N' })
    await alice.say(other, 'elsewhere')
    const filter = {
      event_fields: ['type', 'content.body'],
      room: { rooms: [room], timeline: { types: ['m.room.*'], not_types: ['m.room.name'], not_senders: [bob.userId] } },
    }
    const { filter_id: id } = await bob.call('POST', `/user/${encodeURIComponent(bob.userId)}/filter`, filter)
    for (const query of [filterOf(filter), `&filter=${id}`]) {
      const body = await bob.sync(`&since=${since}${query}`)
      expect(Object.keys(body.rooms.join)).toEqual([room])
      expect(body.rooms.join[room].timeline.events).toEqual([
        { type: 'm.room.message', content: { body: 'from alice' } },
      ])
    }
  })

  it('load members lazily: those who speak, once', async () => {
    const room = await sharedRoom({ name: 'Named' })
    for (const name of ['d1', 'd2', 'd3']) await (await house.person(name)).join(room)
    await alice.say(room, 'hi')
    const lazy = filterOf({ room: { state: { lazy_load_members: true }, timeline: { limit: 1 } } })
    const first = await bob.sync(lazy)
    const members = ({ events }: Json): string[] =>
      events.filter(({ type }: Json) => type === 'm.room.member').map((event: Json) => event.state_key)
    expect(members(first.rooms.join[room].state).toSorted()).toEqual([alice.userId, bob.userId])
    expect(first.rooms.join[room].summary).toMatchObject({ 'm.joined_member_count': 5, 'm.invited_member_count': 0 })
    await alice.say(room, 'again')
    const second = await bob.sync(`&since=${first.next_batch}${lazy}`)
    expect(members(second.rooms.join[room].state)).toEqual([])
  })
})

describe('unread counts', () => {
  it('count what others said since the last receipt or own message, and mentions', async () => {
    const room = await sharedRoom()
    const counts = async (): Promise<Json> => (await bob.sync()).rooms.join[room].unread_notifications
    const mention = { msgtype: 'm.text', body: 'you', 'm.mentions': { user_ids: [bob.userId] } }
    await alice.say(room, 'one')
    await alice.call('PUT', inRoom(room, '/send/m.room.message/note'), { msgtype: 'm.notice', body: 'quiet' })
    const { event_id: mentioned } = await alice.call('PUT', inRoom(room, '/send/m.room.message/mention'), mention)
    await alice.say(room, 'three')
    expect(await counts()).toEqual({ notification_count: 3, highlight_count: 1 })
    await bob.call('POST', inRoom(room, `/receipt/m.read/${encodeURIComponent(mentioned)}`), {})
    expect(await counts()).toEqual({ notification_count: 1, highlight_count: 0 })
    await bob.say(room, 'reply')
    expect(await counts()).toEqual({ notification_count: 0, highlight_count: 0 })
    await alice.say(room, 'four')
    expect(await counts()).toEqual({ notification_count: 1, highlight_count: 0 })
  })
})

describe('presence', () => {
  it('reaches those who share a room', async () => {
    await sharedRoom()
    const { next_batch: since } = await bob.sync()
    await alice.call('PUT', `/presence/${encodeURIComponent(alice.userId)}/status`, {
      presence: 'unavailable',
      status_msg: 'tea',
    })
    const { presence } = await bob.sync(`&since=${since}`)
    const about = presence.events.findLast(({ sender }: Json) => sender === alice.userId)
    expect(about.content).toMatchObject({ presence: 'unavailable', status_msg: 'tea' })
    const stranger = await house.person('stranger')
    expect((await stranger.ask('GET', `/presence/${encodeURIComponent(alice.userId)}/status`)).status).toBe(403)
  })
})

test('B8: the next incremental sync tells how those are with whom one has come to share a room', async () => {
  const [carol, dave] = [await house.person('carol-present'), await house.person('dave-present')]
  const is = (person: Person, status_msg: string): Promise<Json> =>
    person.call('PUT', `/presence/${encodeURIComponent(person.userId)}/status`, { presence: 'online', status_msg })
  const room = await carol.createRoom({ preset: 'public_chat' })
  await is(carol, 'in')
  await is(dave, 'out')
  const tokens = [(await carol.sync()).next_batch, (await dave.sync()).next_batch]
  await dave.join(room)
  const shown = async (person: Person, since: string): Promise<string[]> =>
    ((await person.sync(`&since=${since}`)).presence?.events ?? []).map(({ content }: Json) => content.status_msg)
  expect(await shown(carol, tokens[0]!)).toEqual(['out'])
  expect(await shown(dave, tokens[1]!)).toEqual(['in'])
})

test('B8: nobody is told how one is who was merely invited, or whom they knew already', async () => {
  const [carol, dave] = [await house.person('carol-inviting'), await house.person('dave-invited')]
  const present = { presence: 'online', status_msg: 'here' }
  for (const { call, userId } of [carol, dave]) {
    await call('PUT', `/presence/${encodeURIComponent(userId)}/status`, present)
  }
  const about = async (person: Person, since: string): Promise<Json> => {
    const { presence, next_batch } = await person.sync(`&since=${since}`)
    return { next_batch, shown: presence?.events ?? [] }
  }
  const { next_batch: since } = await carol.sync()
  const room = await carol.createRoom({ invite: [dave.userId] })
  const invited = await about(carol, since)
  expect(invited.shown).toEqual([])
  await dave.join(room)
  const joined = await about(carol, invited.next_batch)
  expect(joined.shown).toHaveLength(1)
  const other = await carol.createRoom({ preset: 'public_chat' })
  await dave.join(other)
  expect((await about(carol, joined.next_batch)).shown).toEqual([])
})

describe('bad input', () => {
  it.each(['nonsense', 's1', 's1_2_3', 't5', 's-1_0_a.0', 's99999999999999999999_0_a.0'])(
    'refuses the token %s',
    async (since) => {
      const { status, body } = await bob.ask('GET', `/sync?since=${since}`)
      expect([status, body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
    },
  )

  it('refuses filters that are none', async () => {
    for (const filter of ['{', '{"room":3}', '999999', 'abc']) {
      const { status } = await bob.ask('GET', `/sync?filter=${encodeURIComponent(filter)}`)
      expect([400, 404]).toContain(status)
    }
  })
})
