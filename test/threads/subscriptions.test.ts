import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_THREAD_SUBSCRIPTIONS } from '../../src/domain/limits/threads.ts'
import { type House, inRoom, openHouse, type Person } from '../rooms/people.ts'

let house: House
let alice: Person
let bob: Person
let room: string
let root: string

const UNSTABLE = '/_matrix/client/unstable'
const at = (roomId: string, rootId: string) =>
  `${UNSTABLE}/io.element.msc4306${inRoom(roomId, `/thread/${encodeURIComponent(rootId)}/subscription`)}`
const LIST = `${UNSTABLE}/io.element.msc4308/thread_subscriptions`

let sent = 0
const reply = async (who: Person, to = root): Promise<string> => {
  const relation = { rel_type: 'm.thread', event_id: to }
  const content = { msgtype: 'm.text', body: 'reply', 'm.relates_to': relation }
  return (await who.call('PUT', inRoom(room, `/send/m.room.message/thread-${++sent}`), content)).event_id
}

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
  room = await alice.createRoom({ preset: 'public_chat' })
  await bob.join(room)
  root = await alice.say(room, 'root')
})
afterAll(() => house.close())

describe('a thread subscription', () => {
  it('is made, read and ended, for one user alone', async () => {
    const none = { status: 404, body: { errcode: 'M_NOT_FOUND' } }
    expect(await bob.ask('GET', at(room, root))).toMatchObject(none)
    expect(await bob.ask('PUT', at(room, root), {})).toEqual({ status: 200, body: {} })
    expect(await bob.call('GET', at(room, root))).toEqual({ automatic: false })
    expect(await alice.ask('GET', at(room, root))).toMatchObject(none)
    for (let twice = 0; twice < 2; twice++) {
      expect(await bob.ask('DELETE', at(room, root))).toEqual({ status: 200, body: {} })
      expect(await bob.ask('GET', at(room, root))).toMatchObject(none)
    }
  })

  it('that a client makes by itself needs an event of the thread, and gives way to what the user wanted', async () => {
    const [later, outside] = [await reply(alice), await alice.say(room, 'outside')]
    const notInThread = { status: 400, body: { errcode: 'IO.ELEMENT.MSC4306.M_NOT_IN_THREAD' } }
    expect(await alice.ask('PUT', at(room, root), { automatic: outside })).toMatchObject(notInThread)
    expect(await alice.ask('PUT', at(room, root), { automatic: later })).toEqual({ status: 200, body: {} })
    expect(await alice.call('GET', at(room, root))).toEqual({ automatic: true })
    await alice.call('PUT', at(room, root), {})
    await alice.call('PUT', at(room, root), { automatic: later })
    expect(await alice.call('GET', at(room, root))).toEqual({ automatic: false })
    await alice.call('DELETE', at(room, root))
    const conflict = { status: 409, body: { errcode: 'IO.ELEMENT.MSC4306.M_CONFLICTING_UNSUBSCRIPTION' } }
    expect(await alice.ask('PUT', at(room, root), { automatic: later })).toMatchObject(conflict)
    expect(await alice.ask('PUT', at(room, root), { automatic: await reply(bob) })).toEqual({ status: 200, body: {} })
  })

  it('needs a root that the user can see', async () => {
    const carol = await house.person('carol')
    const locked = await carol.createRoom()
    const secret = await carol.say(locked, 'secret')
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const body = method === 'PUT' ? {} : undefined
      expect(await bob.ask(method, at(locked, secret), body)).toMatchObject({ status: 403 })
      expect(await bob.ask(method, at(room, '$nothing'), body)).toMatchObject({ status: 404 })
      expect(await bob.ask(method, at(room, secret), body)).toMatchObject({ status: 404 })
    }
    expect(await bob.ask('PUT', at(room, root), { automatic: 'no id' })).toMatchObject({ status: 400 })
  })

  it('is refused to a user with too many, but not where it exists', async () => {
    const dave = await house.person('dave')
    await dave.join(room)
    await dave.call('PUT', at(room, root), {})
    await house.server.database.db.tx((tx) =>
      tx.query(
        `INSERT INTO thread_subscription (user_nid, room_nid, root_id, is_subscribed, is_automatic, position)
         SELECT user_nid, room_nid, '$' || n, true, false, 0 FROM thread_subscription, generate_series(2, $1::int) AS n
         WHERE user_nid = (SELECT user_nid FROM matrix_user WHERE user_id = $2)`,
        [MAX_THREAD_SUBSCRIPTIONS, dave.userId],
      ),
    )
    const another = await alice.say(room, 'another root')
    expect(await dave.ask('PUT', at(room, another), {})).toMatchObject({
      status: 403,
      body: { errcode: 'M_FORBIDDEN' },
    })
    expect(await dave.ask('PUT', at(room, root), {})).toEqual({ status: 200, body: {} })
  })
})

describe('the list of thread subscriptions', () => {
  it('gives changes in pages, the newest first, between two tokens', async () => {
    const erin = await house.person('erin')
    await erin.join(room)
    const { next_batch: before } = await erin.sync()
    const roots = [await erin.say(room, '1'), await erin.say(room, '2'), await erin.say(room, '3')]
    for (const each of roots) await erin.call('PUT', at(room, each), {})
    await erin.call('DELETE', at(room, roots[0]!))
    const first = await erin.call('GET', `${LIST}?dir=b&limit=2`)
    expect(first).toEqual({
      subscribed: { [room]: { [roots[2]!]: { automatic: false, bump_stamp: expect.any(Number) } } },
      unsubscribed: { [room]: { [roots[0]!]: { bump_stamp: expect.any(Number) } } },
      end: expect.any(String),
    })
    expect(await erin.call('GET', `${LIST}?dir=b&limit=2&from=${first.end}&to=${before}`)).toEqual({
      subscribed: { [room]: { [roots[1]!]: { automatic: false, bump_stamp: expect.any(Number) } } },
      unsubscribed: {},
    })
    const { next_batch: now } = await erin.sync()
    expect(await erin.call('GET', `${LIST}?to=${now}`)).toEqual({ subscribed: {}, unsubscribed: {} })
  })

  it('refuses tokens and directions that there are not', async () => {
    for (const query of ['from=x', 'to=-1', 'dir=f', 'limit=0', 'limit=x']) {
      expect(await alice.ask('GET', `${LIST}?${query}`)).toMatchObject({ status: 400 })
    }
  })
})
