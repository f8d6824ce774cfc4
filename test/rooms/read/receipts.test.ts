import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../support/api.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})

afterAll(() => house.close())

const receipt = (person: Person, room: string, kind: string, id: string, body: object = {}) =>
  person.ask('POST', inRoom(room, `/receipt/${kind}/${encodeURIComponent(id)}`), body)

async function sharedRoom(): Promise<string> {
  const room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  return room
}

/** Receipts in a room as a person's first sync tells them: `event_id kind user_id`. */
async function receiptsFor(person: Person, room: string): Promise<string[]> {
  const { rooms } = await person.sync()
  return flatten(rooms.join[room].ephemeral)
}

function flatten(ephemeral: Json): string[] {
  const content = (ephemeral?.events ?? []).find(({ type }: Json) => type === 'm.receipt')?.content ?? {}
  return Object.entries(content as Record<string, Record<string, Json>>).flatMap(([id, kinds]) =>
    Object.entries(kinds).flatMap(([kind, users]) => Object.keys(users).map((user) => `${id} ${kind} ${user}`)),
  )
}

describe('a read receipt', () => {
  it('is seen by all, with its time, at once', async () => {
    const room = await sharedRoom()
    const id = await alice.say(room, 'hello')
    const { next_batch } = await alice.sync()
    const waiting = alice.call('GET', `/sync?timeout=10000&since=${next_batch}`)
    const before = Date.now()
    expect(await receipt(bob, room, 'm.read', id)).toEqual({ status: 200, body: {} })
    const { rooms } = await waiting
    const { events } = rooms.join[room].ephemeral
    const { ts, ...rest } = events[0].content[id]['m.read'][bob.userId]
    expect(rest).toEqual({})
    expect(ts).toBeGreaterThanOrEqual(before)
    expect(events).toHaveLength(1)
  })

  it('moves on and never back, in whatever order the requests arrive', async () => {
    const room = await sharedRoom()
    const ids: string[] = []
    for (const text of ['1', '2', '3', '4']) ids.push(await alice.say(room, text))
    await receipt(bob, room, 'm.read', ids[2]!)
    await receipt(bob, room, 'm.read', ids[0]!)
    expect(await receiptsFor(alice, room)).toEqual([`${ids[2]} m.read ${bob.userId}`])
    // At once, the newest first, by somebody who has given none before.
    await Promise.all(ids.toReversed().map((id) => receipt(alice, room, 'm.read', id)))
    const expected = [`${ids[2]} m.read ${bob.userId}`, `${ids[3]} m.read ${alice.userId}`]
    expect((await receiptsFor(alice, room)).sort()).toEqual(expected.sort())
  })

  it('that says nothing new wakes nobody', async () => {
    const room = await sharedRoom()
    const id = await alice.say(room, 'hello')
    await receipt(bob, room, 'm.read', id)
    const { next_batch } = await alice.sync()
    await receipt(bob, room, 'm.read', id)
    expect((await alice.sync(`&since=${next_batch}`)).next_batch).toBe(next_batch)
  })

  it('kept private is told to its user alone', async () => {
    const room = await sharedRoom()
    const id = await alice.say(room, 'hello')
    const [alices, bobs] = [(await alice.sync()).next_batch, (await bob.sync()).next_batch]
    const waiting = bob.call('GET', `/sync?timeout=10000&since=${bobs}`)
    await receipt(bob, room, 'm.read.private', id)
    expect(flatten((await waiting).rooms.join[room].ephemeral)).toEqual([`${id} m.read.private ${bob.userId}`])
    expect((await alice.sync(`&since=${alices}`)).rooms?.join?.[room]).toBeUndefined()
    expect(await receiptsFor(alice, room)).toEqual([])
  })

  it('clears what was unread up to it', async () => {
    const room = await sharedRoom()
    const first = await alice.say(room, '1')
    await alice.say(room, `2 ${bob.userId}`)
    const unread = async () => (await bob.sync()).rooms.join[room].unread_notifications.notification_count
    expect(await unread()).toBe(2)
    await receipt(bob, room, 'm.read', first)
    expect(await unread()).toBe(1)
  })

  it('survives a restart of what is in memory', async () => {
    const room = await sharedRoom()
    const id = await alice.say(room, 'hello')
    await receipt(bob, room, 'm.read', id)
    const rows = await house.server.database.db.query<{ event_id: string; kind: string }>(
      'SELECT event_id, kind FROM receipt JOIN event USING (event_nid) WHERE event_id = $1',
      [id],
    )
    expect(rows).toEqual([{ event_id: id, kind: 'm.read' }])
  })

  it.each([
    ['of no kind there is', 'm.seen', {}, 400, 'M_INVALID_PARAM'],
    ['in a thread without a name', 'm.read', { thread_id: '' }, 400, 'M_INVALID_PARAM'],
    ['in a thread that is no text', 'm.read', { thread_id: 1 }, 400, 'M_BAD_JSON'],
    ['in a thread that the event is not in', 'm.read', { thread_id: '$elsewhere' }, 400, 'M_INVALID_PARAM'],
    ['of full reading in a thread', 'm.fully_read', { thread_id: 'main' }, 400, 'M_INVALID_PARAM'],
  ])('%s is refused', async (_, kind, body, status, errcode) => {
    const room = await sharedRoom()
    const id = await alice.say(room, 'hello')
    expect(await receipt(bob, room, kind, id, body)).toMatchObject({ status, body: { errcode } })
  })

  it('needs an event that is there', async () => {
    const room = await sharedRoom()
    expect(await receipt(bob, room, 'm.read', '$nothing')).toMatchObject({
      status: 404,
      body: { errcode: 'M_NOT_FOUND' },
    })
    expect((await receipt(bob, room, 'm.read', 'no-id')).status).toBe(400)
  })
})

describe('receipts in threads', () => {
  const related = (rel_type: string, event_id: string) => ({ 'm.relates_to': { rel_type, event_id, key: 'x' } })

  async function thread() {
    const room = await sharedRoom()
    const send = async (txn: string, content: object, type = 'm.room.message'): Promise<string> =>
      (await alice.call('PUT', inRoom(room, `/send/${type}/${txn}`), { msgtype: 'm.text', ...content })).event_id
    const root = await send('root', { body: 'root' })
    const reply = await send('reply', { body: 'reply', ...related('m.thread', root) })
    const read = async (id: string, thread_id?: string, kind = 'm.read', person = bob) =>
      (await receipt(person, room, kind, id, thread_id === undefined ? {} : { thread_id })).status
    return { room, root, reply, send, read }
  }

  /** Receipts as a person is told them: `event_id kind user_id thread_id`. */
  async function sentTo(person: Person, room: string, since = ''): Promise<string[]> {
    const { rooms } = await person.sync(since && `&since=${since}`)
    const { content } = rooms?.join?.[room]?.ephemeral?.events[0] ?? {}
    return Object.entries((content ?? {}) as Record<string, Json>).flatMap(([id, kinds]) =>
      Object.entries(kinds as Record<string, Json>).flatMap(([kind, users]) =>
        Object.entries(users as Record<string, Json>).map(
          ([user, { thread_id }]) => `${id} ${kind} ${user} ${thread_id}`,
        ),
      ),
    )
  }

  it('stand beside the one of the room, and only for events that are in the thread', async () => {
    const { room, root, reply, send, read } = await thread()
    const edit = await send('edit', { body: '* reply', ...related('m.replace', reply) })
    const aside = await send('aside', { body: 'aside' })
    expect(await read(reply, root)).toBe(200)
    expect(await read(edit, root)).toBe(200)
    expect(await read(root, root)).toBe(200)
    expect(await read(aside, root)).toBe(400)
    expect(await read(reply, 'main')).toBe(400)
    expect(await read(aside, 'main')).toBe(200)
    expect((await sentTo(alice, room)).sort()).toEqual(
      [`${edit} m.read ${bob.userId} ${root}`, `${aside} m.read ${bob.userId} main`].sort(),
    )
  })

  it('reach the thread over three relations and no more', async () => {
    const { root, reply, send, read } = await thread()
    const second = await send('second', { body: '*', ...related('m.reference', reply) })
    const third = await send('third', related('m.annotation', second), 'm.reaction')
    const fourth = await send('fourth', related('m.annotation', third), 'm.reaction')
    expect(await read(third, root)).toBe(200)
    expect(await read(third, 'main')).toBe(400)
    expect(await read(fourth, root)).toBe(400)
    expect(await read(fourth, 'main')).toBe(200)
  })

  it('take the root and its reactions for the main timeline, and are accepted there for the thread too', async () => {
    const { root, send, read } = await thread()
    const reaction = await send('reaction', related('m.annotation', root), 'm.reaction')
    expect(await read(root, 'main')).toBe(200)
    expect(await read(reaction, 'main')).toBe(200)
    expect(await read(root, root)).toBe(200)
    expect(await read(reaction, root)).toBe(200)
  })

  it('do not follow a relation to another room', async () => {
    const { root, reply } = await thread()
    const other = await sharedRoom()
    const sent = await alice.setState(other, 'org.example.relation', related('m.annotation', reply))
    expect((await receipt(bob, other, 'm.read', sent, { thread_id: root })).status).toBe(400)
  })

  it('have a position for each user, type and thread, and none goes back', async () => {
    const { room, root, reply, send, read } = await thread()
    const later = await send('later', { body: 'later', ...related('m.thread', root) })
    const newest = await send('newest', { body: 'newest' })
    await read(later, root)
    await read(reply, root)
    await read(reply, root, 'm.read.private')
    await read(newest, 'main')
    await read(root, 'main')
    await read(reply)
    await read(root)
    await read(later, root, 'm.read', alice)
    const bobs = [
      `${later} m.read ${bob.userId} ${root}`,
      `${newest} m.read ${bob.userId} main`,
      `${reply} m.read ${bob.userId} undefined`,
    ]
    const alices = `${later} m.read ${alice.userId} ${root}`
    expect((await sentTo(alice, room)).sort()).toEqual([...bobs, alices].sort())
    const own = `${reply} m.read.private ${bob.userId} ${root}`
    expect((await sentTo(bob, room)).sort()).toEqual([...bobs, alices, own].sort())
  })

  it('are not told where the receipt for the whole room is at the same event, in whatever order they come', async () => {
    const { room, root, reply, read } = await thread()
    const shown = [`${reply} m.read ${bob.userId} undefined`]
    await read(reply)
    const { next_batch } = await alice.sync()
    expect(await read(reply, root)).toBe(200)
    expect(await sentTo(alice, room, next_batch)).toEqual([])
    expect(await sentTo(alice, room)).toEqual(shown)
    const other = await thread()
    await other.read(other.reply, other.root)
    await other.read(other.reply)
    expect(await sentTo(alice, other.room)).toEqual([`${other.reply} m.read ${bob.userId} undefined`])
  })

  it('kept private hide no public receipt of others at the same event', async () => {
    const { room, root, reply, read } = await thread()
    await read(reply, root, 'm.read', alice)
    await read(reply, root, 'm.read.private')
    const all = [`${reply} m.read ${alice.userId} ${root}`, `${reply} m.read.private ${bob.userId} ${root}`]
    expect((await sentTo(bob, room)).sort()).toEqual(all.sort())
    expect(await sentTo(alice, room)).toEqual([all.find((line) => line.includes(alice.userId))])
  })
})

describe('the marker of what was read in full', () => {
  const marker = async (room: string): Promise<string | undefined> => {
    const { rooms } = await bob.sync()
    const data = rooms.join[room].account_data?.events ?? []
    return data.find(({ type }: Json) => type === 'm.fully_read')?.content.event_id
  }

  it('is account data of the room, set together with receipts or alone', async () => {
    const room = await sharedRoom()
    const [first, second] = [await alice.say(room, '1'), await alice.say(room, '2')]
    await bob.call('POST', inRoom(room, '/read_markers'), {
      'm.fully_read': first,
      'm.read': second,
      'm.read.private': second,
    })
    expect(await marker(room)).toBe(first)
    expect((await receiptsFor(bob, room)).sort()).toEqual(
      [`${second} m.read ${bob.userId}`, `${second} m.read.private ${bob.userId}`].sort(),
    )
    await receipt(bob, room, 'm.fully_read', second)
    expect(await marker(room)).toBe(second)
    await bob.call('POST', inRoom(room, '/read_markers'), { 'm.fully_read': first })
    expect(await marker(room)).toBe(second)
    await bob.call('POST', inRoom(room, '/read_markers'), {})
  })

  it('is refused to those outside, and for events of other rooms', async () => {
    const [room, other] = [await sharedRoom(), await alice.createRoom()]
    const id = await alice.say(other, 'hello')
    const set = (person: Person, where: string) =>
      person.ask('POST', inRoom(where, '/read_markers'), { 'm.fully_read': id })
    expect((await set(bob, other)).status).toBe(403)
    expect((await set(bob, room)).status).toBe(404)
    expect((await bob.ask('POST', inRoom(other, '/read_markers'), {})).status).toBe(403)
  })
})
