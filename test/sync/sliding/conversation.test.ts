import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, openHouse, type Person } from '../../rooms/people.ts'
import { bodiesOf, Connection, FORMS, stateOf, strippedOf } from './connection.ts'

let house: House
let alice: Person
let bob: Person

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

describe.each(FORMS)('a connection of the %s form', (form) => {
  it('gives a window of rooms, the newest first, and then what is new', async () => {
    const me = await house.person(`me${form}`)
    const rooms: string[] = []
    for (const name of ['one', 'two', 'three']) {
      const room = await me.createRoom({ preset: 'public_chat', name })
      rooms.push(room)
      await me.say(room, `in ${name}`)
    }
    const client = new Connection(me, form)
    const list = { range: [0, 1] as const, limit: 1, state: [['m.room.name', ''] as const] }
    const first = await client.next({ lists: { all: list } })
    expect(first.lists).toEqual({ all: { count: 3 } })
    expect(Object.keys(first.rooms).sort()).toEqual([rooms[1], rooms[2]].sort())
    const three = first.rooms[rooms[2]!]
    expect(bodiesOf(three)).toEqual(['in three'])
    expect(stateOf(three)).toEqual(['m.room.name|'])
    expect(three).toMatchObject({ initial: true, name: 'three', limited: true, num_live: 0, joined_count: 1 })
    expect(three.bump_stamp).toBeGreaterThan(first.rooms[rooms[1]!].bump_stamp)

    const quiet = await client.next({ lists: { all: list } })
    expect(quiet).toMatchObject({ lists: { all: { count: 3 } }, rooms: {} })

    await me.say(rooms[0]!, 'again')
    const news = await client.next({ lists: { all: list } })
    expect(Object.keys(news.rooms)).toEqual([rooms[0]])
    expect(news.rooms[rooms[0]!]).toMatchObject({ initial: true, num_live: 1, limited: true })
    expect(bodiesOf(news.rooms[rooms[0]!])).toEqual(['again'])

    await me.say(rooms[1]!, 'back')
    await me.say(rooms[1]!, 'and more')
    const back = await client.next({ lists: { all: { ...list, limit: 10 } } })
    expect(bodiesOf(back.rooms[rooms[1]!])).toEqual(['in two', 'back', 'and more'])
  })

  it('wakes at once for a message, and waits without one', async () => {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    const client = new Connection(bob, form, 'waking')
    await client.next({ rooms: { [room]: { limit: 5 } } })
    const waiting = client.next({ rooms: { [room]: { limit: 5 } }, timeout: 20_000 })
    await alice.say(room, 'wake')
    const answer = await waiting
    expect(bodiesOf(answer.rooms[room])).toEqual(['wake'])
    const begun = performance.now()
    await client.next({ rooms: { [room]: { limit: 5 } }, timeout: 1_000 })
    expect(performance.now() - begun).toBeGreaterThan(900)
  })

  it('shows an invitation, the join, and the kick', async () => {
    const guest = await house.person(`guest${form}`)
    const room = await alice.createRoom({ name: 'Tea' })
    const client = new Connection(guest, form)
    const request = { lists: { all: { range: [0, 19] as const, state: [['m.room.member', '$ME'] as const] } } }
    await client.next(request)
    await alice.invite(room, guest)
    const invited = (await client.next(request)).rooms[room]
    expect(strippedOf(invited)).toContainEqual(
      expect.objectContaining({ type: 'm.room.name', content: { name: 'Tea' } }),
    )
    expect(invited.timeline).toBeUndefined()
    await guest.join(room)
    const joined = (await client.next(request)).rooms[room]
    expect(joined).toMatchObject({ initial: true, name: 'Tea', joined_count: 2 })
    await alice.call('POST', `/rooms/${encodeURIComponent(room)}/kick`, { user_id: guest.userId })
    await alice.setState(room, 'm.room.name', { name: 'Secret' })
    const kicked = (await client.next(request)).rooms[room]
    expect(JSON.stringify(kicked)).not.toContain('Secret')
    expect(kicked.timeline.at(-1).content.membership).toBe('leave')
    expect(stateOf(kicked)).toEqual([`m.room.member|${guest.userId}`])
    expect((await client.next(request)).rooms).toEqual({})
  })

  it('refuses an unknown position', async () => {
    const client = new Connection(alice, form)
    for (const pos of ['x', 's1_1_abc.1', 's1_1_abc.1~0123456789.0.0.abcdef']) {
      const { status, body } = await client.ask({ pos })
      expect([status, body.errcode, pos]).toEqual([400, 'M_UNKNOWN_POS', pos])
    }
  })
})

it('answers extensions', async () => {
  for (const form of FORMS) {
    const room = await alice.createRoom({ preset: 'public_chat' })
    await bob.join(room)
    const client = new Connection(bob, form, `ext${form}`)
    const enabled = { enabled: true }
    const extensions = { to_device: enabled, e2ee: enabled, account_data: enabled, receipts: enabled, typing: enabled }
    const request = { rooms: { [room]: {} }, extensions }
    const first = (await client.next(request)).extensions
    expect(first.to_device).toEqual({ next_batch: expect.any(String), events: [] })
    expect(first.e2ee.device_one_time_keys_count).toEqual({ signed_curve25519: 0 })
    expect(first.account_data.global.map(({ type }: { type: string }) => type)).toContain('m.push_rules')
    const said = await alice.say(room, 'read me')
    await alice.call('POST', `/rooms/${encodeURIComponent(room)}/receipt/m.read/${encodeURIComponent(said)}`, {})
    await alice.call('PUT', `/rooms/${encodeURIComponent(room)}/typing/${encodeURIComponent(alice.userId)}`, {
      typing: true,
      timeout: 20_000,
    })
    await bob.call('PUT', `/user/${encodeURIComponent(bob.userId)}/rooms/${encodeURIComponent(room)}/tags/u.x`, {})
    const news = (await client.next(request)).extensions
    const typing = { user_ids: [alice.userId] }
    const receipt = { [said]: { 'm.read': { [alice.userId]: { ts: expect.any(Number) } } } }
    expect(news.typing.rooms).toEqual({ [room]: form === 'merged' ? typing : { type: 'm.typing', content: typing } })
    expect(news.receipts.rooms).toEqual({
      [room]: form === 'merged' ? receipt : { type: 'm.receipt', content: receipt },
    })
    expect(news.account_data.rooms).toEqual({ [room]: [{ type: 'm.tag', content: { tags: { 'u.x': {} } } }] })
  }
})
