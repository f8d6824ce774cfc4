import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, inRoom, openHouse, type Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'
import { bodiesOf, Connection, FORMS, isExpanded, stateOf } from './connection.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

async function roomOfTwo(...texts: string[]): Promise<string> {
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  for (const text of texts) await alice.say(room, text)
  return room
}

describe.each(FORMS)('timelines in the %s form', (form) => {
  let conn = 0
  const connect = () => new Connection(bob, form, `t${++conn}`)

  it('9: receipts, reactions and members do not bump a room, a message does', async () => {
    const room = await roomOfTwo('one')
    const client = connect()
    const request = { rooms: { [room]: { limit: 3 } } }
    const { bump_stamp: stamp } = (await client.next(request)).rooms[room]
    const said = await alice.say(room, 'two')
    const moved = (await client.next(request)).rooms[room].bump_stamp
    expect(moved).toBeGreaterThan(stamp)
    await alice.call('PUT', inRoom(room, '/send/m.reaction/r1'), {
      'm.relates_to': { rel_type: 'm.annotation', event_id: said, key: '+' },
    })
    await alice.setState(room, 'm.room.member', { membership: 'join', displayname: 'A' }, alice.userId)
    expect((await client.next(request)).rooms[room].bump_stamp).toBe(moved)
  })

  it('10: a higher limit on an idle room is answered at once, with the events before', async () => {
    const room = await roomOfTwo('one', 'two', 'three', 'four')
    const client = connect()
    const first = (await client.next({ rooms: { [room]: { limit: 1 } } })).rooms[room]
    expect(bodiesOf(first)).toEqual(['four'])
    const begun = performance.now()
    const wider = (await client.next({ rooms: { [room]: { limit: 3 } }, timeout: 30_000 })).rooms[room]
    expect(performance.now() - begun).toBeLessThan(25_000)
    expect(bodiesOf(wider)).toEqual(['two', 'three', 'four'])
    expect(isExpanded(wider)).toBe(true)
    expect(wider).toMatchObject({ limited: true, num_live: 0 })
    expect(wider.initial).toBeUndefined()
    await alice.say(room, 'five')
    const news = (await client.next({ rooms: { [room]: { limit: 3 } } })).rooms[room]
    expect(bodiesOf(news)).toEqual(['five'])
    expect(isExpanded(news)).toBe(false)
    expect(news).toMatchObject({ limited: false, num_live: 1 })
    // A lower limit, and the same higher one again: the client has those events.
    await client.next({ rooms: { [room]: { limit: 1 } } })
    expect((await client.next({ rooms: { [room]: { limit: 3 } } })).rooms).toEqual({})
  })

  it('10: more required state of an idle room is answered at once', async () => {
    const room = await roomOfTwo('one')
    await alice.setState(room, 'm.room.topic', { topic: 'T' })
    const client = connect()
    await client.next({ rooms: { [room]: { limit: 1, state: [['m.room.create', '']] } } })
    const state = [
      ['m.room.create', ''],
      ['m.room.topic', ''],
    ] as const
    const begun = performance.now()
    const more = (await client.next({ rooms: { [room]: { limit: 1, state } }, timeout: 30_000 })).rooms[room]
    expect(performance.now() - begun).toBeLessThan(25_000)
    expect(stateOf(more)).toEqual(['m.room.topic|'])
    expect(more.timeline).toBeUndefined()
  })

  it('says limited when there is a gap, and pages back from every prev_batch and pos (34)', async () => {
    const room = await roomOfTwo('one')
    const client = connect()
    await client.next({ rooms: { [room]: { limit: 2 } } })
    for (const text of ['two', 'three', 'four']) await alice.say(room, text)
    const gap = (await client.next({ rooms: { [room]: { limit: 2 } } })).rooms[room]
    expect(gap).toMatchObject({ limited: true, num_live: 2 })
    expect(bodiesOf(gap)).toEqual(['three', 'four'])
    for (const from of [gap.prev_batch, client.pos]) {
      const page = await bob.call('GET', inRoom(room, `/messages?dir=b&limit=2&from=${encodeURIComponent(from)}`))
      const texts = page.chunk.map(({ content }: Json) => content.body)
      expect(texts).toEqual(from === client.pos ? ['four', 'three'] : ['two', 'one'])
    }
    const path = `/keys/changes?from=${encodeURIComponent(client.pos!)}&to=${encodeURIComponent(client.pos!)}`
    expect(await bob.call('GET', path)).toEqual({ changed: [], left: [] })
  })

  it('33: keeps the order of the stream', async () => {
    const texts = Array.from({ length: 30 }, (_, index) => `n${index}`)
    const room = await roomOfTwo(...texts)
    expect(bodiesOf((await connect().next({ rooms: { [room]: { limit: 100 } } })).rooms[room])).toEqual(texts)
  })

  it('35: a room that comes into the window by a message has one live event', async () => {
    const eve = await house.person(`eve${form}`)
    const low = await alice.createRoom({ preset: 'public_chat' })
    await eve.join(low)
    for (const text of ['one', 'two']) await alice.say(low, text)
    await eve.createRoom({})
    const client = new Connection(eve, form)
    const request = { lists: { all: { range: [0, 0] as const, limit: 3 } } }
    expect(Object.keys((await client.next(request)).rooms)).not.toContain(low)
    await alice.say(low, 'look')
    const section = (await client.next(request)).rooms[low]
    expect(section).toMatchObject({ initial: true, num_live: 1 })
    expect(bodiesOf(section)).toEqual(['one', 'two', 'look'])
  })

  it('36: what happened in rooms outside the window comes when the window grows', async () => {
    const eve = await house.person(`widow${form}`)
    const rooms: string[] = []
    for (let index = 0; index < 4; index++) {
      const room = await alice.createRoom({ preset: 'public_chat' })
      await eve.join(room)
      rooms.push(room)
    }
    const client = new Connection(eve, form)
    const window = (last: number) => ({ lists: { all: { range: [0, last] as const, limit: 10 } } })
    await client.next(window(3))
    await client.next(window(0))
    for (const room of [rooms[0]!, rooms[1]!, rooms[2]!]) await alice.say(room, `in ${rooms.indexOf(room)}`)
    const top = await client.next(window(0))
    expect(Object.keys(top.rooms)).toEqual([rooms[2]])
    const wide = await client.next(window(3))
    expect(Object.keys(wide.rooms).sort()).toEqual([rooms[0], rooms[1]].sort())
    for (const room of [rooms[0]!, rooms[1]!]) {
      expect(wide.rooms[room].initial).toBeUndefined()
      expect(bodiesOf(wide.rooms[room])).toEqual([`in ${rooms.indexOf(room)}`])
      expect(wide.rooms[room].limited).toBe(false)
    }
  })

  it('37: unread counts are those of classic sync, in the form that has them', async () => {
    const room = await roomOfTwo()
    const client = connect()
    const request = { rooms: { [room]: { limit: 5 } } }
    await client.next(request)
    await alice.say(room, 'one')
    await alice.say(room, 'hello bob')
    const section = (await client.next(request)).rooms[room]
    const { unread_notifications: counts } = (await bob.sync()).rooms.join[room]
    const { notification_count, highlight_count } = section
    if (form === 'merged') expect([notification_count, highlight_count]).toEqual([undefined, undefined])
    else expect({ notification_count, highlight_count }).toEqual(counts)
    const last = section.timeline.at(-1).event_id
    await bob.call('POST', inRoom(room, `/receipt/m.read/${encodeURIComponent(last)}`), {})
    const read = (await client.next(request)).rooms[room]
    if (form === 'merged') expect(read).toBeUndefined()
    else expect(read).toMatchObject({ notification_count: 0, highlight_count: 0 })
  })

  it('bundles aggregations where the timeline is limited, and shows the transaction id to its sender', async () => {
    const room = await roomOfTwo('one')
    const edited = await bob.call('PUT', inRoom(room, `/send/m.room.message/txn${form}`), {
      msgtype: 'm.text',
      body: 'draft',
    })
    await bob.call('PUT', inRoom(room, `/send/m.room.message/edit${form}`), {
      msgtype: 'm.text',
      body: '* final',
      'm.new_content': { msgtype: 'm.text', body: 'final' },
      'm.relates_to': { rel_type: 'm.replace', event_id: edited.event_id },
    })
    const section = (await connect().next({ rooms: { [room]: { limit: 2 } } })).rooms[room]
    const draft = section.timeline.find(({ event_id }: Json) => event_id === edited.event_id)
    expect(draft.unsigned.transaction_id).toBe(`txn${form}`)
    expect(draft.unsigned['m.relations']['m.replace'].content['m.new_content'].body).toBe('final')
  })

  it('leaves out what ignored users say, and wakes for nothing of it', async () => {
    const [deaf, pest] = [await house.person(`deaf${form}`), await house.person(`pest${form}`)]
    const room = await alice.createRoom({ preset: 'public_chat' })
    for (const one of [deaf, pest]) await one.join(room)
    await deaf.call('PUT', `/user/${encodeURIComponent(deaf.userId)}/account_data/m.ignored_user_list`, {
      ignored_users: { [pest.userId]: {} },
    })
    const client = new Connection(deaf, form)
    const request = { rooms: { [room]: { limit: 10 } } }
    await client.next(request)
    await pest.say(room, 'noise')
    await alice.say(room, 'sense')
    expect(bodiesOf((await client.next(request)).rooms[room])).toEqual(['sense'])
  })
})
