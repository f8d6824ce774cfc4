import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, inRoom, openHouse, type Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'
import { Connection, FORMS, type Form } from './connection.ts'

let house: House
let alice: Person
let count = 0

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
})
afterAll(() => house.close())

const enc = encodeURIComponent
const newPerson = () => house.person(`ext${++count}`)
const ON = { enabled: true }

async function roomWith(...people: Person[]): Promise<string> {
  const room = await alice.createRoom({ preset: 'public_chat' })
  for (const one of people) await one.join(room)
  return room
}

const send = (to: Person, n: number) =>
  alice.call('PUT', `/sendToDevice/m.test/x${++count}`, { messages: { [to.userId]: { [to.deviceId]: { n } } } })
const numbersOf = (answer: Json) => answer.extensions.to_device.events.map(({ content }: Json) => content.n)

/** What a receipt or typing event says: whole events of the type, or contents alone, by the form. */
function contentOf(form: Form, type: string, part: Json | undefined): Json | undefined {
  if (form === 'merged' || part === undefined) return part
  expect(part.type).toBe(type)
  return part.content
}

describe.each(FORMS)('extensions of the %s form', (form) => {
  const connect = (person: Person, id = `e${++count}`) => new Connection(person, form, id)

  it('29: messages come until their token comes back, whatever the position is, and never after', async () => {
    const bob = await newPerson()
    for (const n of [1, 2, 3]) await send(bob, n)
    const ask = (since?: string, limit?: number) => ({
      extensions: {
        to_device: { ...ON, ...(since !== undefined && { since }), ...(limit !== undefined && { limit }) },
      },
    })
    const client = connect(bob)
    const first = await client.next(ask(undefined, 2))
    expect(numbersOf(first)).toEqual([1, 2])
    expect(numbersOf(await client.next(ask(undefined, 2)))).toEqual([1, 2])
    // A connection begun anew without a token still gets them all.
    expect(numbersOf(await connect(bob).next(ask()))).toEqual([1, 2, 3])
    const since = first.extensions.to_device.next_batch
    const begun = performance.now()
    const second = await client.next({ ...ask(since, 2), timeout: 20_000 })
    expect(performance.now() - begun).toBeLessThan(15_000)
    expect(numbersOf(second)).toEqual([3])
    expect(numbersOf(await connect(bob).next(ask()))).toEqual([3])
    const last = second.extensions.to_device.next_batch
    expect(numbersOf(await client.next(ask(last)))).toEqual([])
    expect(numbersOf(await connect(bob).next(ask(last)))).toEqual([])
    await send(bob, 4)
    expect(numbersOf(await client.next(ask(last)))).toEqual([4])
    // A position of the rooms acknowledges nothing.
    await bob.call('GET', `/sync?timeout=0&since=${enc(client.pos!)}`)
    expect(numbersOf(await client.next(ask(last)))).toEqual([4])
  })

  it('29: refuses a limit of 0 and a token that is none', async () => {
    const client = connect(alice)
    for (const bad of [
      { limit: 0 },
      { limit: -1 },
      { limit: 1.5 },
      { limit: 'x' },
      { since: 'x' },
      { since: 7 },
      { since: '-1' },
    ]) {
      const { status, body } = await client.ask({ extensions: { to_device: { ...ON, ...bad } } })
      expect([status, body.errcode, bad]).toEqual([400, 'M_INVALID_PARAM', bad])
    }
  })

  it('e2ee: counts in every answer; changed devices and new neighbours wake the request', async () => {
    const bob = await newPerson()
    const room = await roomWith(bob)
    const client = connect(bob)
    const request = { extensions: { e2ee: ON } }
    const first = await client.next(request)
    const counts = { device_one_time_keys_count: { signed_curve25519: 0 }, device_unused_fallback_key_types: [] }
    expect(first.extensions.e2ee).toEqual(counts)
    const quiet = await client.next(request)
    expect(quiet.extensions.e2ee).toEqual({ ...counts, device_lists: { changed: [], left: [] } })
    expect((await client.next(request)).extensions.e2ee).toEqual(quiet.extensions.e2ee)
    const eve = await newPerson()
    const waiting = client.next({ ...request, timeout: 20_000 })
    await eve.join(room)
    expect((await waiting).extensions.e2ee.device_lists).toEqual({ changed: [eve.userId], left: [] })
    const pos = client.pos
    await eve.leave(room)
    const left = await client.next(request)
    expect(left.extensions.e2ee.device_lists).toEqual({ changed: [], left: [eve.userId] })
    // A repeated position tells it again.
    expect((await client.next({ ...request, pos })).extensions.e2ee).toEqual(left.extensions.e2ee)
  })

  it('27: tags and markers of rooms outside the window come when it grows', async () => {
    const bob = await newPerson()
    const [low, high] = [await roomWith(bob), await roomWith(bob)]
    const said = await alice.say(low, 'read')
    await alice.say(high, 'top')
    const own = `/user/${enc(bob.userId)}`
    const client = connect(bob)
    const request = (last: number) => ({
      lists: { all: { range: [0, last] as const, limit: 1 } },
      extensions: { account_data: ON },
    })
    await client.next(request(1))
    await client.next(request(0))
    await bob.call('PUT', `${own}/rooms/${enc(low)}/tags/u.x`, {})
    await bob.call('POST', inRoom(low, '/read_markers'), { 'm.fully_read': said })
    expect((await client.next(request(0))).extensions).toEqual({})
    const { rooms } = (await client.next(request(1))).extensions.account_data
    expect(rooms[low].map(({ type }: Json) => type).sort()).toEqual(['m.fully_read', 'm.tag'])
    expect((await client.next(request(1))).extensions).toEqual({})
    // What was deleted meanwhile is told too.
    await client.next(request(0))
    await bob.call('DELETE', `/_matrix/client/unstable/org.matrix.msc3391${own}/rooms/${enc(low)}/account_data/m.tag`)
    expect((await client.next(request(1))).extensions.account_data.rooms[low]).toEqual([{ type: 'm.tag', content: {} }])
    const whole = (await connect(bob).next(request(1))).extensions.account_data
    expect(whole.global.map(({ type }: Json) => type)).toEqual(['m.push_rules'])
    expect(whole.rooms[low].map(({ type }: Json) => type)).toEqual(['m.fully_read'])
  })

  it('28: own receipts come with a room, and once after it was out of the window', async () => {
    const bob = await newPerson()
    const [low, high] = [await roomWith(bob), await roomWith(bob)]
    const said = await alice.say(low, 'read')
    await alice.say(high, 'top')
    const client = connect(bob)
    const request = (last: number) => ({
      lists: { all: { range: [0, last] as const, limit: 1 } },
      extensions: { receipts: ON },
    })
    expect((await client.next(request(1))).extensions).toEqual({})
    await client.next(request(0))
    await bob.call('POST', inRoom(low, `/receipt/m.read.private/${enc(said)}`), {})
    await alice.call('POST', inRoom(low, `/receipt/m.read/${enc(said)}`), {})
    expect((await client.next(request(0))).extensions).toEqual({})
    const back = (await client.next(request(1))).extensions.receipts.rooms[low]
    expect(contentOf(form, 'm.receipt', back)?.[said]).toEqual({
      'm.read': { [alice.userId]: { ts: expect.any(Number) } },
      'm.read.private': { [bob.userId]: { ts: expect.any(Number) } },
    })
    expect((await client.next(request(1))).extensions).toEqual({})
    const fresh = (await connect(bob).next(request(1))).extensions.receipts.rooms[low]
    expect(contentOf(form, 'm.receipt', fresh)).toEqual(contentOf(form, 'm.receipt', back))
    const alices = (await connect(alice).next({ ...request(9) })).extensions.receipts.rooms[low]
    expect(JSON.stringify(alices)).not.toContain('m.read.private')
  })

  it('typing: joined rooms in scope, again when a room comes back, and none of ignored users', async () => {
    const bob = await newPerson()
    const [one, two] = [await roomWith(bob), await roomWith(bob)]
    const client = connect(bob)
    const rooms = { [one]: { limit: 1 }, [two]: { limit: 1 } }
    const request = { rooms, extensions: { typing: { ...ON, rooms: [one] } } }
    await client.next(request)
    const type = (room: string, typing: boolean) =>
      alice.call('PUT', inRoom(room, `/typing/${enc(alice.userId)}`), { typing, timeout: 30_000 })
    await type(one, true)
    await type(two, true)
    const news = (await client.next({ ...request, timeout: 20_000 })).extensions.typing.rooms
    expect(Object.keys(news)).toEqual([one])
    expect(contentOf(form, 'm.typing', news[one])).toEqual({ user_ids: [alice.userId] })
    await client.next({ ...request, rooms: { [two]: { limit: 1 } } })
    await type(one, false)
    const back = (await client.next(request)).extensions.typing.rooms
    expect(contentOf(form, 'm.typing', back[one])).toEqual({ user_ids: [] })
    // A wider scope shows the other room, too.
    const wide = (await client.next({ ...request, extensions: { typing: ON } })).extensions.typing.rooms
    expect(contentOf(form, 'm.typing', wide[two])).toEqual({ user_ids: [alice.userId] })
    await type(two, false)
  })

  it('switched on in the middle, and off and on again, an extension leaves the client current', async () => {
    const bob = await newPerson()
    const room = await roomWith(bob)
    const client = connect(bob)
    const rooms = { [room]: { limit: 1 } }
    const tag = (name: string) => bob.call('PUT', `/user/${enc(bob.userId)}/rooms/${enc(room)}/tags/${name}`, {})
    await tag('u.a')
    await client.next({ rooms })
    const on = (await client.next({ rooms, extensions: { account_data: ON } })).extensions.account_data
    expect(on.global.map(({ type }: Json) => type)).toContain('m.push_rules')
    expect(on.rooms[room]).toEqual([{ type: 'm.tag', content: { tags: { 'u.a': {} } } }])
    await client.next({ rooms })
    await tag('u.b')
    await client.next({ rooms })
    const again = (await client.next({ rooms, extensions: { account_data: ON } })).extensions.account_data
    expect(Object.keys(again.rooms[room][0].content.tags).sort()).toEqual(['u.a', 'u.b'])
  })

  it('thread subscriptions: changes, under the key of the request', async () => {
    const bob = await newPerson()
    const room = await roomWith(bob)
    const root = await alice.say(room, 'root')
    const client = connect(bob)
    const name = 'io.element.msc4308.thread_subscriptions'
    const request = { extensions: { [name]: { ...ON, limit: 10 } } }
    expect((await client.next(request)).extensions).toEqual({})
    const path = `/_matrix/client/unstable/io.element.msc4306/rooms/${enc(room)}/thread/${enc(root)}/subscription`
    const waiting = client.next({ ...request, timeout: 20_000 })
    await bob.call('PUT', path, {})
    expect((await waiting).extensions[name].subscribed[room][root]).toMatchObject({ automatic: false })
    await bob.call('DELETE', path)
    expect((await client.next(request)).extensions[name].unsubscribed[room][root]).toBeDefined()
    expect((await client.next(request)).extensions).toEqual({})
  })

  it('presence of neighbours, for those who ask for it', async () => {
    const bob = await newPerson()
    await roomWith(bob)
    const client = connect(bob)
    await alice.call('PUT', `/presence/${enc(alice.userId)}/status`, {
      presence: 'online',
      status_msg: `here ${count}`,
    })
    const events = (await client.next({ extensions: { presence: ON } })).extensions.presence.events
    expect(events.find(({ sender }: Json) => sender === alice.userId).content.status_msg).toBe(`here ${count}`)
  })

  it('39: a request sets the presence that it names, and offline sets none', async () => {
    const bob = await newPerson()
    await roomWith(bob)
    const status = async () => (await alice.call('GET', `/presence/${enc(bob.userId)}/status`)).presence
    await connect(bob).next({ presence: 'offline' })
    expect(await status()).toBe('offline')
    await connect(bob).next({ presence: 'unavailable' })
    expect(await status()).toBe('unavailable')
    await connect(bob).next({})
    expect(await status()).toBe('online')
    const { status: code, body } = await connect(bob).ask({ presence: 'dancing' })
    expect([code, body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
  })

  it('leaves unknown extensions out, and refuses odd ones', async () => {
    const client = connect(alice)
    expect(
      (await client.next({ extensions: { 'org.example.unknown': ON, typing: { enabled: false } } })).extensions,
    ).toEqual({})
    for (const bad of [
      { typing: { enabled: 'yes' } },
      { receipts: { ...ON, rooms: 'all' } },
      { account_data: { ...ON, lists: [1] } },
    ]) {
      const { status, body } = await client.ask({ extensions: bad })
      expect([status, body.errcode, bad]).toEqual([400, 'M_INVALID_PARAM', bad])
    }
  })
})
