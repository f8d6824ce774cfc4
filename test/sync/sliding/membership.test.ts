import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, inRoom, openHouse, type Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'
import { bodiesOf, Connection, FORMS, type ListWish, stateOf, strippedOf } from './connection.ts'

let house: House
let alice: Person
let count = 0

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
})
afterAll(() => house.close())

const ME: ListWish['state'] = [
  ['m.room.member', '$ME'],
  ['m.room.name', ''],
]
const WINDOW = { lists: { all: { range: [0, 19] as const, state: ME } } }

const newPerson = () => house.person(`member${++count}`)

async function publicRoom(name: string): Promise<string> {
  return alice.createRoom({ preset: 'public_chat', name })
}

describe.each(FORMS)('memberships in the %s form', (form) => {
  it('1: nothing of a room is sent after the user left it, was kicked or was banned', async () => {
    for (const act of ['leave', 'kick', 'ban']) {
      const bob = await newPerson()
      const room = await publicRoom('Before')
      await bob.join(room)
      const client = new Connection(bob, form)
      const request = { ...WINDOW, extensions: { typing: { enabled: true }, receipts: { enabled: true } } }
      await client.next(request)
      const said = await alice.say(room, 'the last that bob may see')
      if (act === 'leave') await bob.leave(room)
      else await alice.call('POST', inRoom(room, `/${act}`), { user_id: bob.userId })
      await alice.setState(room, 'm.room.name', { name: 'Secret name' })
      await alice.setState(room, 'm.room.topic', { topic: 'Secret topic' })
      const secret = await alice.say(room, 'secret words')
      await alice.call('POST', inRoom(room, `/receipt/m.read/${encodeURIComponent(secret)}`), {})
      await alice.call('PUT', inRoom(room, `/typing/${encodeURIComponent(alice.userId)}`), {
        typing: true,
        timeout: 30_000,
      })
      const answer = await client.next(request)
      const text = JSON.stringify(answer)
      expect(text, act).not.toMatch(/secret/i)
      expect(answer.extensions).toEqual({})
      const section = answer.rooms[room]
      expect(section.timeline.map(({ event_id }: Json) => event_id)).toContain(said)
      const own = section.required_state.find(({ state_key }: Json) => state_key === bob.userId)
      expect(own.content.membership).toBe(act === 'ban' ? 'ban' : 'leave')
      if (form === 'merged') expect(section.membership).toBe(act === 'ban' ? 'ban' : 'leave')
      await alice.say(room, 'more secret words')
      expect((await client.next(request)).rooms).toEqual({})
    }
  })

  it('1: lists do not find a room by what it became after the user left it, though a ban followed', async () => {
    const bob = await newPerson()
    const room = await publicRoom('Before')
    await bob.join(room)
    await bob.leave(room)
    await alice.setState(room, 'm.room.name', { name: 'Secret name' })
    await alice.setState(room, 'm.room.encryption', { algorithm: 'm.megolm.v1.aes-sha2' })
    await alice.call('POST', inRoom(room, '/ban'), { user_id: bob.userId })
    const list = (filters: Json) => ({ range: [0, 19] as const, filters })
    const { lists } = await new Connection(bob, form).next({
      lists: {
        before: list({ room_name_like: 'before', is_encrypted: false }),
        secret: list({ room_name_like: 'secret' }),
        encrypted: list({ is_encrypted: true }),
      },
    })
    expect(lists).toEqual({ before: { count: 1 }, secret: { count: 0 }, encrypted: { count: 0 } })
  })

  it('1: lists do not find a room by what it became after the invitation was withdrawn', async () => {
    const bob = await newPerson()
    const room = await publicRoom('Before')
    await alice.invite(room, bob)
    const client = new Connection(bob, form)
    const all = { range: [0, 19] as const }
    await client.next({ lists: { all } })
    await alice.call('POST', inRoom(room, '/kick'), { user_id: bob.userId })
    await alice.setState(room, 'm.room.name', { name: 'Secret name' })
    const named = (room_name_like: string) => ({ ...all, filters: { room_name_like } })
    const { lists } = await client.next({ lists: { before: named('before'), secret: named('secret') } })
    expect(lists).toEqual({ before: { count: 1 }, secret: { count: 0 } })
  })

  it('2: a room that was forgotten is listed again after a rejoin, and after another invitation', async () => {
    const bob = await newPerson()
    const [rejoined, reinvited] = [await publicRoom('rejoined'), await alice.createRoom({})]
    await bob.join(rejoined)
    await alice.invite(reinvited, bob)
    await bob.join(reinvited)
    for (const room of [rejoined, reinvited]) {
      await bob.leave(room)
      await bob.call('POST', inRoom(room, '/forget'), {})
    }
    expect((await new Connection(bob, form).next(WINDOW)).lists.all.count).toBe(0)
    await bob.join(rejoined)
    await alice.invite(reinvited, bob)
    const answer = await new Connection(bob, form).next(WINDOW)
    expect(Object.keys(answer.rooms).sort()).toEqual([rejoined, reinvited].sort())
    expect(answer.rooms[rejoined]).toMatchObject({ initial: true, name: 'rejoined' })
    expect(strippedOf(answer.rooms[reinvited])).toContainEqual(expect.objectContaining({ state_key: bob.userId }))
  })

  it('3: a leave on one device reaches the others once, and a fresh connection not at all', async () => {
    const bob = await newPerson()
    const room = await publicRoom('left')
    await bob.join(room)
    const other = new Connection(bob, form, 'other')
    await other.next(WINDOW)
    await bob.leave(room)
    const answer = await other.next(WINDOW)
    expect(Object.keys(answer.rooms)).toEqual([room])
    expect(answer.rooms[room].initial).toBeUndefined()
    expect((await other.next(WINDOW)).rooms).toEqual({})
    expect(await new Connection(bob, form).next(WINDOW)).toMatchObject({ rooms: {}, lists: { all: { count: 0 } } })
  })

  it('3: a room that others took the user out of is on every connection, and one that is asked for by id too', async () => {
    const bob = await newPerson()
    const [kicked, left] = [await publicRoom('kicked'), await publicRoom('left')]
    for (const room of [kicked, left]) await bob.join(room)
    const said = await alice.say(kicked, 'before the kick')
    await alice.call('POST', inRoom(kicked, '/kick'), { user_id: bob.userId })
    await bob.leave(left)
    await alice.say(kicked, 'after it')
    const answer = await new Connection(bob, form).next({ ...WINDOW, rooms: { [left]: { limit: 3, state: ME ?? [] } } })
    expect(Object.keys(answer.rooms).sort()).toEqual([kicked, left].sort())
    expect(answer.lists.all.count).toBe(1)
    expect(bodiesOf(answer.rooms[kicked])).toEqual(['before the kick'])
    expect(answer.rooms[kicked].timeline.at(-2).event_id).toBe(said)
    expect(answer.rooms[left].timeline.at(-1).content.membership).toBe('leave')
    expect(stateOf(answer.rooms[left])).toContain(`m.room.member|${bob.userId}`)
  })

  it('6: an invitation that was declined and repeated is at the top of a full window', async () => {
    const bob = await newPerson()
    const list = { lists: { all: { range: [0, 1] as const, limit: 1 } } }
    for (const name of ['a', 'b', 'c']) await bob.createRoom({ name })
    const room = await alice.createRoom({ name: 'Tea' })
    const client = new Connection(bob, form)
    await client.next(list)
    await alice.invite(room, bob)
    expect(strippedOf((await client.next(list)).rooms[room])).toBeDefined()
    await bob.leave(room)
    const declined = (await client.next(list)).rooms[room]
    if (form === 'merged')
      expect(declined).toMatchObject({ membership: 'leave', stripped_state: [{ state_key: bob.userId }] })
    else expect(declined.required_state[0].content.membership).toBe('leave')
    await alice.invite(room, bob)
    const again = (await client.next(list)).rooms[room]
    expect(strippedOf(again)).toContainEqual(expect.objectContaining({ content: { name: 'Tea' } }))
    expect(JSON.stringify(again)).not.toContain('timeline')
  })

  it('7: invitations from ignored users are not shown, on old connections and new ones', async () => {
    const [bob, pest] = [await newPerson(), await newPerson()]
    const client = new Connection(bob, form)
    await client.next(WINDOW)
    await bob.call('PUT', `/user/${encodeURIComponent(bob.userId)}/account_data/m.ignored_user_list`, {
      ignored_users: { [pest.userId]: {} },
    })
    await pest.createRoom({ invite: [bob.userId], name: 'Buy now' })
    for (const one of [client, new Connection(bob, form, 'new')]) {
      expect(await one.next(WINDOW)).toMatchObject({ rooms: {}, lists: { all: { count: 0 } } })
    }
  })

  it('8: the stamp of an invitation is its position, and that of a room is never below 0', async () => {
    const bob = await newPerson()
    const [old, invited, later] = [await publicRoom('old'), await alice.createRoom({}), await publicRoom('later')]
    await bob.join(old)
    await alice.say(old, 'old news')
    await alice.invite(invited, bob)
    await bob.join(later)
    await alice.say(later, 'later news')
    const { rooms } = await new Connection(bob, form).next(WINDOW)
    expect(rooms[invited].bump_stamp).toBeGreaterThan(rooms[old].bump_stamp)
    expect(rooms[invited].bump_stamp).toBeLessThan(rooms[later].bump_stamp)
    expect(rooms[old].bump_stamp).toBeGreaterThanOrEqual(0)
  })

  it('shows a knock, and that it was accepted', async () => {
    const bob = await newPerson()
    const room = await alice.createRoom({
      initial_state: [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }],
      name: 'Knock',
    })
    const client = new Connection(bob, form)
    await client.next(WINDOW)
    await bob.call('POST', `/knock/${encodeURIComponent(room)}`, {})
    const knocked = (await client.next(WINDOW)).rooms[room]
    const own = strippedOf(knocked).find(({ state_key }) => state_key === bob.userId)
    expect(own!.content.membership).toBe('knock')
    await alice.invite(room, bob)
    const invited = (await client.next(WINDOW)).rooms[room]
    expect(strippedOf(invited).find(({ state_key }) => state_key === bob.userId)!.content.membership).toBe('invite')
  })

  it('says nothing of rooms that the user may not know', async () => {
    const bob = await newPerson()
    const hidden = await alice.createRoom({ name: 'Hidden' })
    const banned = await publicRoom('Banned')
    await alice.call('POST', inRoom(banned, '/ban'), { user_id: bob.userId })
    const open = await alice.createRoom({
      preset: 'public_chat',
      initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: 'world_readable' } }],
    })
    const rooms = Object.fromEntries(
      [hidden, banned, open, '!nowhere:localhost', 'no room'].map((id) => [id, { limit: 5 }]),
    )
    const answer = await new Connection(bob, form).next({ ...WINDOW, rooms })
    expect(answer).toMatchObject({ rooms: {}, lists: { all: { count: 0 } } })
  })

  it('does not show what happened before the user came, where history is for members since their join', async () => {
    const bob = await newPerson()
    const room = await alice.createRoom({
      preset: 'public_chat',
      initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: 'joined' } }],
    })
    await alice.say(room, 'hidden')
    await bob.join(room)
    await alice.say(room, 'shown')
    const answer = await new Connection(bob, form).next({ rooms: { [room]: { limit: 20 } } })
    expect(bodiesOf(answer.rooms[room])).toEqual(['shown'])
  })
})
