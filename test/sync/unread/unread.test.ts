import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MAX_UNREAD_THREADS } from '../../../src/domain/limits/unread.ts'
import { getUnread } from '../../../src/store/events/unread.ts'
import { BY_NID } from '../../../src/store/rooms/room-purge.ts'
import { type House, inRoom, openHouse, type Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'

let house: House
let alice: Person
let bob: Person
let carol: Person
let room: string

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  carol = await house.person('carol')
})

afterAll(() => house.close())

beforeEach(async () => {
  room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  await carol.join(room)
})

let sent = 0

async function send(person: Person, content: object, type = 'm.room.message'): Promise<string> {
  const body = { msgtype: 'm.text', body: 'hello', ...content }
  return (await person.call('PUT', inRoom(room, `/send/${type}/txn${sent++}`), body)).event_id
}

const inThread = (root: string) => ({ 'm.relates_to': { rel_type: 'm.thread', event_id: root } })
const mentions = (...people: Person[]) => ({ 'm.mentions': { user_ids: people.map(({ userId }) => userId) } })

const read = (person: Person, id: string, thread_id?: string, kind = 'm.read') =>
  person.call('POST', inRoom(room, `/receipt/${kind}/${encodeURIComponent(id)}`), thread_id ? { thread_id } : {})

async function section(person: Person, timeline: object = { unread_thread_notifications: true }, since = '') {
  const filter = encodeURIComponent(JSON.stringify({ room: { rooms: [room], timeline } }))
  const { rooms } = await person.call('GET', `/sync?timeout=0&filter=${filter}${since && `&since=${since}`}`)
  return rooms?.join?.[room]
}

const count = (notification_count: number, highlight_count = 0) => ({ notification_count, highlight_count })
const main = async (person: Person): Promise<Json> => (await section(person)).unread_notifications
const threads = async (person: Person): Promise<Json> => (await section(person)).unread_thread_notifications
const total = async (person: Person): Promise<Json> => (await section(person, {})).unread_notifications

const rule = (person: Person, path: string, body: object) => person.call('PUT', `/pushrules/global/${path}`, body)
const noRule = (person: Person, path: string) => person.call('DELETE', `/pushrules/global/${path}`)
const mute = (person: Person) =>
  rule(person, `override/${room.slice(1)}`, {
    conditions: [{ kind: 'event_match', key: 'room_id', pattern: room }],
    actions: [],
  })
const unmute = (person: Person) => noRule(person, `override/${room.slice(1)}`)

async function rowsOf(person: Person): Promise<number> {
  const [row] = await house.server.database.db.query<{ count: number }>(
    `SELECT count(*)::int FROM unread_event JOIN matrix_user USING (user_nid) JOIN room USING (room_nid)
     WHERE user_id = $1 AND room_id = $2`,
    [person.userId, room],
  )
  return row!.count
}

describe('the unread count of a room', () => {
  it('comes in the same answer as the event', async () => {
    const { next_batch } = await bob.sync()
    await send(alice, mentions(bob))
    const { rooms } = await bob.call('GET', `/sync?timeout=10000&since=${next_batch}`)
    expect(rooms.join[room].timeline.events).toHaveLength(1)
    expect(rooms.join[room].unread_notifications).toEqual(count(1, 1))
  })

  it('falls at once to what is left after a receipt', async () => {
    const ids = [await send(alice, {}), await send(alice, {}), await send(alice, {})]
    expect(await main(bob)).toEqual(count(3))
    await read(bob, ids[1]!)
    expect(await main(bob)).toEqual(count(1))
  })

  it('is right after a highlight was read, and one before it is left', async () => {
    await send(alice, mentions(bob))
    const second = await send(alice, mentions(bob))
    await send(alice, mentions(bob))
    expect(await main(bob)).toEqual(count(3, 3))
    await read(bob, second)
    expect(await main(bob)).toEqual(count(1, 1))
    expect(await rowsOf(bob)).toBe(1)
  })

  it('falls with a private receipt, and the further of the two kinds counts', async () => {
    const [first, second] = [await send(alice, {}), await send(alice, {})]
    await read(bob, second, undefined, 'm.read.private')
    expect(await main(bob)).toEqual(count(0))
    await read(bob, first)
    expect(await main(bob)).toEqual(count(0))
  })

  it('falls with a receipt for the main timeline at the event of an earlier one for all', async () => {
    const id = await send(alice, {})
    await read(bob, id)
    await read(bob, id, 'main')
    await send(alice, {})
    expect(await main(bob)).toEqual(count(1))
  })

  it('leaves out what was redacted, mentions too', async () => {
    const [first, second] = [await send(alice, {}), await send(alice, mentions(bob))]
    await send(alice, {})
    expect(await main(bob)).toEqual(count(3, 1))
    for (const [txn, id] of [first, second].entries()) {
      await alice.call('PUT', inRoom(room, `/redact/${encodeURIComponent(id)}/${txn}`), {})
    }
    expect(await main(bob)).toEqual(count(1))
    // Also for somebody whose count was not in memory.
    expect(await main(carol)).toEqual(count(1))
  })

  it('counts an edit that mentions somebody for them alone', async () => {
    const id = await send(alice, {})
    await read(bob, id)
    await read(carol, id)
    await send(alice, {
      'm.new_content': {},
      'm.relates_to': { rel_type: 'm.replace', event_id: id },
      ...mentions(bob),
    })
    expect(await main(bob)).toEqual(count(1, 1))
    expect(await main(carol)).toEqual(count(0))
  })

  it('ends with leaving, and so do its rows', async () => {
    await mute(carol)
    await send(alice, mentions(bob))
    expect(await rowsOf(bob)).toBe(1)
    await bob.leave(room)
    expect(await rowsOf(bob)).toBe(0)
    await bob.join(room)
    expect(await main(bob)).toEqual(count(0))
    await unmute(carol)
  })
})

describe('unread counts of threads', () => {
  it('stand apart for clients that ask, and in the room for others', async () => {
    const root = await send(alice, {})
    await send(alice, inThread(root))
    await send(carol, { ...inThread(root), ...mentions(bob) })
    const { unread_notifications, unread_thread_notifications } = await section(bob)
    expect(unread_notifications).toEqual(count(1))
    expect(unread_thread_notifications).toEqual({ [root]: count(2, 1) })
    expect(await section(bob, {})).not.toHaveProperty('unread_thread_notifications')
    expect(await total(bob)).toEqual(count(3, 1))
    const old = 'org.matrix.msc3773.unread_thread_notifications'
    const answer = await section(bob, { [old]: true })
    expect(answer[old]).toEqual({ [root]: count(2, 1) })
    expect(answer.unread_notifications).toEqual(count(1))
    expect(answer).not.toHaveProperty('unread_thread_notifications')
  })

  it('come in the same answer as the event', async () => {
    const root = await send(alice, {})
    const { next_batch } = await bob.sync()
    await send(alice, inThread(root))
    const answer = await section(bob, { unread_thread_notifications: true }, next_batch)
    expect(answer.timeline.events).toHaveLength(1)
    expect(answer.unread_thread_notifications).toEqual({ [root]: count(1) })
  })

  it('end with the thread: it keeps no badge on the room', async () => {
    const root = await send(alice, {})
    const reply = await send(alice, inThread(root))
    await read(bob, root, 'main')
    expect(await main(bob)).toEqual(count(0))
    expect(await threads(bob)).toEqual({ [root]: count(1) })
    await read(bob, reply, root)
    expect(await threads(bob)).toBeUndefined()
    expect(await total(bob)).toEqual(count(0))
  })

  it('are left by a receipt for the main timeline, and ended by one for all', async () => {
    const [one, two] = [await send(alice, {}), await send(alice, {})]
    await send(alice, inThread(one))
    const reply = await send(alice, inThread(two))
    await send(alice, inThread(one))
    const last = await send(alice, {})
    await read(bob, last, 'main')
    expect(await threads(bob)).toEqual({ [one]: count(2), [two]: count(1) })
    await read(bob, reply)
    expect(await threads(bob)).toEqual({ [one]: count(1) })
    await read(bob, last)
    expect(await total(bob)).toEqual(count(0))
  })

  it('fall by what the reader writes there, and not by what they write elsewhere', async () => {
    const root = await send(alice, {})
    await send(alice, inThread(root))
    await send(bob, {})
    expect(await main(bob)).toEqual(count(0))
    expect(await threads(bob)).toEqual({ [root]: count(1) })
    await send(alice, {})
    await send(bob, inThread(root))
    expect(await threads(bob)).toBeUndefined()
    expect(await main(bob)).toEqual(count(1))
  })

  it('leave out what was redacted; a receipt at it still reads its thread', async () => {
    const root = await send(alice, {})
    await read(bob, root, 'main')
    await send(alice, inThread(root))
    const reply = await send(alice, inThread(root))
    expect(await threads(bob)).toEqual({ [root]: count(2) })
    await alice.call('PUT', inRoom(room, `/redact/${encodeURIComponent(reply)}/1`), {})
    expect(await threads(bob)).toEqual({ [root]: count(1) })
    await read(bob, reply, root)
    expect(await total(bob)).toEqual(count(0))
  })

  it('follow relations to the thread', async () => {
    const root = await send(alice, {})
    const reply = await send(alice, inThread(root))
    await send(alice, { 'm.relates_to': { rel_type: 'm.reference', event_id: reply } })
    expect(await threads(bob)).toEqual({ [root]: count(2) })
  })

  it('are told of the threads that were active last', async () => {
    const beyond = 3
    const roots: string[] = []
    for (let thread = 0; thread < MAX_UNREAD_THREADS + beyond; thread++) roots.push(await send(alice, {}))
    await main(carol)
    for (const root of roots) await send(alice, inThread(root))
    for (const person of [bob, carol]) {
      const shown = await threads(person)
      expect(Object.keys(shown).sort()).toEqual(roots.slice(beyond).sort())
    }
  })
})

describe('unread counts of users with own rules', () => {
  it('stay at nothing in a muted room, and begin anew when it is heard again', async () => {
    await send(alice, {})
    expect(await main(bob)).toEqual(count(1))
    await mute(bob)
    expect(await main(bob)).toEqual(count(0))
    await send(alice, mentions(bob))
    expect(await main(bob)).toEqual(count(0))
    await unmute(bob)
    expect(await main(bob)).toEqual(count(0))
    await send(alice, {})
    expect(await main(bob)).toEqual(count(1))
    expect(await main(carol)).toEqual(count(3))
    expect(await rowsOf(bob)).toBe(0)
  })

  it('count mentions alone where a room is to notify of them alone', async () => {
    const path = `room/${encodeURIComponent(room)}`
    await send(alice, mentions(bob))
    await send(alice, {})
    await rule(bob, path, { actions: [] })
    expect(await main(bob)).toEqual(count(1, 1))
    await send(alice, {})
    await send(alice, mentions(bob))
    expect(await main(bob)).toEqual(count(2, 2))
    await noRule(bob, path)
    await send(alice, {})
    expect(await main(bob)).toEqual(count(3, 2))
  })

  it('highlight keywords, in threads too, at a row for each for this user alone', async () => {
    await rule(bob, 'content/cake', { pattern: 'cake', actions: ['notify', { set_tweak: 'highlight' }] })
    const root = await send(alice, {})
    await send(alice, { body: 'there is cake' })
    await send(alice, { body: 'Cake!', ...inThread(root) })
    expect(await main(bob)).toEqual(count(2, 1))
    expect(await threads(bob)).toEqual({ [root]: count(1, 1) })
    expect(await rowsOf(bob)).toBe(2)
    expect(await rowsOf(carol)).toBe(0)
    expect(await total(carol)).toEqual(count(3))
    await noRule(bob, 'content/cake')
  })

  it('cost no row for messages that notify as for all others', async () => {
    await rule(bob, 'content/cake', { pattern: 'cake', actions: ['notify'] })
    await send(alice, {})
    await send(alice, { body: 'cake' })
    expect(await rowsOf(bob)).toBe(0)
    expect(await main(bob)).toEqual(count(2))
    await noRule(bob, 'content/cake')
  })

  it('are the same after a restart', async () => {
    await rule(bob, 'content/cake', { pattern: 'cake', actions: ['notify', { set_tweak: 'highlight' }] })
    await send(alice, { body: 'cake' })
    await house.restart()
    // The rules are not in memory yet when this comes.
    await send(alice, { body: 'cake' })
    expect(await main(bob)).toEqual(count(2, 2))
    await noRule(bob, 'content/cake')
  })
})

describe('messages of somebody who is ignored', () => {
  const ignore = (person: Person, ...whom: Person[]) =>
    person.call('PUT', `/user/${encodeURIComponent(person.userId)}/account_data/m.ignored_user_list`, {
      ignored_users: Object.fromEntries(whom.map(({ userId }) => [userId, {}])),
    })
  /** How many rows each table has of the room. */
  const rowsOfRoom = async (): Promise<Map<string, number>> => {
    // Which rooms are in use is noted in the background.
    const counts = ['event', ...BY_NID.filter((name) => name !== 'open_room')].map(
      (table) =>
        `SELECT '${table}' AS name, count(*)::int FROM ${table} JOIN room r USING (room_nid) WHERE r.room_id = $1`,
    )
    const rows = await house.server.database.db.query<{ name: string; count: number }>(counts.join(' UNION ALL '), [
      room,
    ])
    return new Map(rows.map(({ name, count }) => [name, count]))
  }
  /** What is written while something is done, by table. */
  const rowsFor = async (act: () => Promise<unknown>): Promise<Record<string, number>> => {
    const before = await rowsOfRoom()
    await act()
    const after = [...(await rowsOfRoom())].map(([name, count]) => [name, count - before.get(name)!] as const)
    return Object.fromEntries(after.filter(([, count]) => count !== 0))
  }
  afterEach(async () => {
    for (const person of [bob, carol]) await ignore(person)
  })

  it('do not count from then on, and cost no row', async () => {
    await send(alice, mentions(bob))
    await ignore(bob, alice)
    await ignore(carol, alice)
    const root = await send(alice, mentions(bob, carol))
    await send(alice, inThread(root))
    await send(alice, {})
    // What counts for nobody is not subtracted.
    await send(alice, {}, 'm.reaction')
    expect(await main(bob)).toEqual(count(1, 1))
    expect(await threads(bob)).toBeUndefined()
    expect(await main(carol)).toEqual(count(1))
    expect([await rowsOf(bob), await rowsOf(carol)]).toEqual([1, 0])
    await house.restart()
    expect(await main(bob)).toEqual(count(1, 1))
    expect(await total(carol)).toEqual(count(1))
  })

  it('cost no row beside those of any message, in any table of rooms', async () => {
    const say = async () => {
      const root = await send(alice, {})
      await send(alice, inThread(root))
      await send(alice, {}, 'm.reaction')
    }
    const usual = await rowsFor(say)
    expect(usual).toMatchObject({ event: 3, thread_event: 1 })
    expect(await rowsFor(() => send(alice, mentions(bob, carol)))).toEqual({ event: 1, unread_event: 2 })
    await ignore(bob, alice)
    await ignore(carol, alice)
    expect(await rowsFor(say)).toEqual(usual)
    expect(await rowsFor(() => send(alice, mentions(bob, carol)))).toEqual({ event: 1 })
  })

  it('are looked for among the newest unread events', async () => {
    await ignore(bob, alice)
    const root = await send(alice, {})
    for (const content of [{}, {}, inThread(root), inThread(root), inThread(root)]) await send(alice, content)
    const { db } = house.server.database
    const [at] = await db.query<{ user_nid: number; room_nid: number }>(
      'SELECT user_nid, room_nid FROM matrix_user, room WHERE user_id = $1 AND room_id = $2',
      [bob.userId, room],
    )
    const found = async (lookedAt: number) => {
      const most = { threads: 10, lookedAt }
      const rows = await getUnread(db, at!.user_nid, [at!.room_nid], most, [alice.userId])
      return rows.toSorted((a, b) => a.root_id.length - b.root_id.length).map(({ own_counts }) => own_counts)
    }
    // Five events are newer than the root: two of the main timeline, then three of the thread.
    expect([await found(2), await found(5), await found(10)]).toEqual([
      [0, 2],
      [2, 3],
      [3, 3],
    ])
  })

  it('cost nothing where they do not count anyway', async () => {
    await mute(bob)
    await ignore(bob, alice)
    await send(alice, mentions(bob))
    await send(alice, {}, 'm.reaction')
    expect(await rowsOf(bob)).toBe(0)
    await unmute(bob)
  })

  it('count again from then on for whoever does not ignore them any more', async () => {
    await ignore(bob, alice)
    await ignore(carol, alice)
    const [first] = [await send(alice, {}), await send(alice, {})]
    expect(await main(bob)).toEqual(count(0))
    await alice.call('PUT', inRoom(room, `/redact/${encodeURIComponent(first)}/txn${sent++}`), {})
    expect([await main(bob), await main(carol)]).toEqual([count(0), count(0)])
    await ignore(bob)
    expect(await main(bob)).toEqual(count(0))
    await send(alice, {})
    expect([await main(bob), await main(carol)]).toEqual([count(1), count(0)])
    // What somebody else ignores meanwhile counts for whoever does not.
    await ignore(bob, alice)
    await send(alice, {})
    await house.restart()
    expect([await main(bob), await main(carol)]).toEqual([count(1), count(0)])
  })

  it('do not change what others count', async () => {
    await ignore(bob, alice)
    await send(alice, mentions(carol))
    await send(carol, {})
    expect([await main(bob), await main(alice)]).toEqual([count(1), count(1)])
    await send(alice, mentions(carol))
    expect(await main(carol)).toEqual(count(1, 1))
  })
})
