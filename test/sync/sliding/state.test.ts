import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type House, inRoom, openHouse, type Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'
import { Connection, FORMS, stateOf } from './connection.ts'

let house: House
let alice: Person
let bob: Person
let conn = 0

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  bob = await house.person('bob')
})
afterAll(() => house.close())

const MEMBERS = 'm.room.member'
const membersOf = (section: Json): string[] =>
  stateOf(section).flatMap((key) => (key.startsWith(MEMBERS) ? [key.slice(MEMBERS.length + 1)] : []))

async function sharedRoom(request: object = {}): Promise<string> {
  const room = await alice.createRoom({ preset: 'public_chat', ...request })
  await bob.join(room)
  return room
}

describe.each(FORMS)('required state in the %s form', (form) => {
  const connect = (person = bob) => new Connection(person, form, `s${++conn}`)

  it('gives what patterns match: whole pairs, types, keys, the user, everything', async () => {
    const room = await sharedRoom({ name: 'N' })
    await alice.setState(room, 'org.example.x', { n: 1 }, 'one')
    await alice.setState(room, 'org.example.x', { n: 2 }, 'two')
    await alice.setState(room, 'org.example.y', { n: 3 }, 'one')
    const ask = async (state: [string, string][]) => {
      const { rooms } = await connect().next({ rooms: { [room]: { limit: 1, state } } })
      return stateOf(rooms[room]).sort()
    }
    expect(await ask([])).toEqual([])
    expect(await ask([['m.room.name', '']])).toEqual(['m.room.name|'])
    expect(await ask([['org.example.x', '*']])).toEqual(['org.example.x|one', 'org.example.x|two'])
    expect(await ask([['*', 'one']])).toEqual(['org.example.x|one', 'org.example.y|one'])
    expect(await ask([[MEMBERS, '$ME']])).toEqual([`m.room.member|${bob.userId}`])
    const all = await ask([['*', '*']])
    expect(all).toEqual(
      expect.arrayContaining(['m.room.create|', 'org.example.y|one', `m.room.member|${alice.userId}`]),
    )
  })

  it('30: special keys are those of the form alone', async () => {
    const room = await sharedRoom()
    await alice.setState(room, 'org.example.z', {}, '$ME')
    const { path, body } = {
      merged: {
        path: '/_matrix/client/v4/sync',
        body: {
          include: [
            { type: 'org.example.z', state_key: '$ME' },
            { type: '*', state_key: '' },
          ],
        },
      },
      unstable: {
        path: '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync',
        body: [
          ['org.example.z', '$ME'],
          ['m.room.create', ''],
        ],
      },
    }[form]
    const answer = await bob.call('POST', path, {
      room_subscriptions: { [room]: { timeline_limit: 1, required_state: body } },
    })
    expect(stateOf(answer.rooms[room])).toEqual(form === 'merged' ? ['org.example.z|$ME'] : ['m.room.create|'])
  })

  it('21: lazily loads the members whom the timeline shows, senders and targets, and each once', async () => {
    const room = await sharedRoom()
    const [eve, quiet] = [await house.person(`eve${++conn}`), await house.person(`quiet${conn}`)]
    for (const one of [eve, quiet]) await one.join(room)
    await alice.say(room, 'hello')
    const client = connect()
    const request = { rooms: { [room]: { limit: 1, lazy: true } } }
    expect(membersOf((await client.next(request)).rooms[room])).toEqual([alice.userId])
    await alice.say(room, 'again')
    expect(membersOf((await client.next(request)).rooms[room])).toEqual([])
    await alice.call('POST', inRoom(room, '/kick'), { user_id: eve.userId })
    const kick = (await client.next(request)).rooms[room]
    expect(membersOf(kick)).toEqual([eve.userId])
    await quiet.say(room, 'hi')
    const forked = await client.ask(request)
    expect(membersOf(forked.body.rooms[room])).toEqual([quiet.userId])
    // The answer was lost: the member comes again.
    expect(membersOf((await client.next(request)).rooms[room])).toEqual([quiet.userId])
  })

  it('gives every change of a member where there is no gap', async () => {
    const room = await sharedRoom()
    const eve = await house.person(`eve${++conn}`)
    await eve.join(room)
    const client = connect()
    const request = { rooms: { [room]: { limit: 10, lazy: true } } }
    await client.next(request)
    await alice.setState(room, MEMBERS, { membership: 'join', displayname: 'A2' }, alice.userId)
    await eve.leave(room)
    const news = (await client.next(request)).rooms[room]
    expect(news.limited).toBe(false)
    expect(membersOf(news).sort()).toEqual([alice.userId, eve.userId].sort())
    expect(news).toMatchObject({ joined_count: 2, invited_count: 0 })
  })

  it('25: an empty name counts as none: there are heroes, without the user, five at most', async () => {
    const room = await sharedRoom({ name: 'Named' })
    await alice.setState(room, MEMBERS, { membership: 'join', displayname: 'Ally' }, alice.userId)
    for (let index = 0; index < 6; index++) await (await house.person(`hero${++conn}`)).join(room)
    const client = connect()
    const request = { rooms: { [room]: { limit: 1 } } }
    const named = (await client.next(request)).rooms[room]
    expect([named.name, named.heroes]).toEqual(['Named', undefined])
    await alice.setState(room, 'm.room.name', { name: '' })
    const { heroes } = (await client.next(request)).rooms[room]
    expect(heroes).toHaveLength(5)
    expect(heroes.map(({ user_id }: Json) => user_id)).not.toContain(bob.userId)
    expect(heroes).toContainEqual({ user_id: alice.userId, displayname: 'Ally' })
  })

  it('26: tells that a name and a picture were removed', async () => {
    const room = await sharedRoom({ name: 'Named' })
    await alice.setState(room, 'm.room.avatar', { url: 'mxc://localhost/x' })
    const client = connect()
    const request = { rooms: { [room]: { limit: 1 } } }
    expect((await client.next(request)).rooms[room]).toMatchObject({ name: 'Named', avatar: 'mxc://localhost/x' })
    await alice.setState(room, 'm.room.name', {})
    await alice.setState(room, 'm.room.avatar', {})
    const section = (await client.next(request)).rooms[room]
    if (form === 'merged') expect(section).toMatchObject({ name: null, avatar: null })
    else expect('name' in section).toBe(false)
    expect(section.heroes).toHaveLength(1)
  })

  it('is_dm is there when it changes', async () => {
    const room = await sharedRoom()
    const client = connect()
    const request = { rooms: { [room]: { limit: 1 } } }
    expect((await client.next(request)).rooms[room].is_dm).toBeUndefined()
    const direct = `/user/${encodeURIComponent(bob.userId)}/account_data/m.direct`
    await bob.call('PUT', direct, { [alice.userId]: [room] })
    expect((await client.next({ ...request, timeout: 20_000 })).rooms[room]).toMatchObject({ is_dm: true })
    expect((await client.next(request)).rooms).toEqual({})
    await bob.call('PUT', direct, {})
    expect((await client.next(request)).rooms[room]).toMatchObject({ is_dm: false })
    await bob.call('PUT', direct, { [alice.userId]: [room] })
    expect((await connect().next(request)).rooms[room].is_dm).toBe(true)
    await bob.call('PUT', direct, {})
  })
})

it('combines the wishes of lists and subscriptions, and says in which lists a room is', async () => {
  const room = await sharedRoom({ name: 'Both' })
  for (const text of ['1', '2', '3']) await alice.say(room, text)
  const client = new Connection(bob, 'merged', 'both')
  const answer = await client.next({
    lists: {
      a: { range: [0, 0], limit: 1, state: [['m.room.name', '']] },
      b: { limit: 2, state: [['m.room.create', '']], filters: { is_encrypted: false } },
    },
    rooms: { [room]: { limit: 3, state: [['m.room.name', '']], lazy: true } },
  })
  const section = answer.rooms[room]
  expect(section.lists.sort()).toEqual(['a', 'b'])
  expect(section.membership).toBe('join')
  expect(stateOf(section).sort()).toEqual([`m.room.member|${alice.userId}`, 'm.room.create|', 'm.room.name|'].sort())
  expect(section.timeline).toHaveLength(3)
})

it('subtracts what is excluded, but no lazily loaded member', async () => {
  const room = await sharedRoom({ name: 'Less' })
  await alice.say(room, 'x')
  const required_state = { include: [{}], exclude: [{ type: 'm.room.create' }, { type: MEMBERS }], lazy_members: true }
  const answer = await bob.call('POST', '/_matrix/client/v4/sync', {
    room_subscriptions: { [room]: { timeline_limit: 1, required_state } },
  })
  const state = stateOf(answer.rooms[room])
  expect(state).toContain('m.room.name|')
  expect(state).not.toContain('m.room.create|')
  expect(membersOf(answer.rooms[room])).toEqual([alice.userId])
})
