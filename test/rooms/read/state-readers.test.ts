import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../support/api.ts'
import { type House, inRoom, openHouse, type Person } from '../people.ts'

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
  room = await alice.createRoom({ preset: 'public_chat', name: 'Hall' })
  await bob.join(room)
  await alice.invite(room, carol)
})

afterAll(() => house.close())

describe('state', () => {
  it('is an array of client events, the create event first', async () => {
    const state: Json[] = await alice.call('GET', inRoom(room, '/state'))
    expect(state[0]).toMatchObject({ type: 'm.room.create', state_key: '', room_id: room, sender: alice.userId })
    for (const event of state) {
      expect(Object.keys(event)).toEqual(
        expect.arrayContaining(['content', 'event_id', 'origin_server_ts', 'sender', 'state_key', 'type', 'unsigned']),
      )
    }
    const keys = state.map(({ type, state_key }) => `${type} ${state_key}`)
    expect(new Set(keys).size).toBe(keys.length)
    expect(keys).toEqual(expect.arrayContaining([`m.room.member ${carol.userId}`, 'm.room.name ']))
  })

  it('is read by type and key, as content or as an event', async () => {
    await alice.setState(room, 'org.example.seat', { taken: true }, 'row 1/seat %')
    const path = inRoom(room, `/state/org.example.seat/${encodeURIComponent('row 1/seat %')}`)
    expect(await alice.call('GET', path)).toEqual({ taken: true })
    expect(await alice.call('GET', `${path}?format=content`)).toEqual({ taken: true })
    expect(await alice.call('GET', `${path}?format=event`)).toMatchObject({
      type: 'org.example.seat',
      state_key: 'row 1/seat %',
      content: { taken: true },
      sender: alice.userId,
      room_id: room,
    })
    expect((await alice.ask('GET', `${path}?format=other`)).status).toBe(400)
  })

  it('with the empty key is there with and without a slash at the end', async () => {
    await alice.call('PUT', inRoom(room, '/state/m.room.topic/'), { topic: 'with' })
    expect(await alice.call('GET', inRoom(room, '/state/m.room.topic'))).toEqual({ topic: 'with' })
    await alice.call('PUT', inRoom(room, '/state/m.room.topic'), { topic: 'without' })
    expect(await alice.call('GET', inRoom(room, '/state/m.room.topic/'))).toEqual({ topic: 'without' })
  })

  it('that the room does not have is not found', async () => {
    for (const rest of ['/state/m.room.avatar', '/state/m.room.name/key', '/state/org.example.unheard/of']) {
      expect(await alice.ask('GET', inRoom(room, rest))).toMatchObject({
        status: 404,
        body: { errcode: 'M_NOT_FOUND' },
      })
    }
  })

  it('tells what it took the place of', async () => {
    const before = await alice.setState(room, 'org.example.step', { step: 1 })
    const path = inRoom(room, '/state/org.example.step?format=event')
    expect((await alice.call('GET', path)).unsigned.prev_content).toBeUndefined()
    await alice.setState(room, 'org.example.step', { step: 2 })
    const { unsigned, content } = await alice.call('GET', path)
    expect([content, unsigned.prev_content, unsigned.replaces_state]).toEqual([{ step: 2 }, { step: 1 }, before])
  })
})

describe('members', () => {
  const members = async (rest = '', person = alice): Promise<Record<string, string>> => {
    const { chunk } = await person.call('GET', inRoom(room, `/members${rest}`))
    return Object.fromEntries(chunk.map((event: Json) => [event.state_key, event.content.membership]))
  }

  it('are all who ever had to do with the room, or those asked for', async () => {
    const all = { [alice.userId]: 'join', [bob.userId]: 'join', [carol.userId]: 'invite' }
    expect(await members()).toEqual(all)
    expect(await members('?membership=join')).toEqual({ [alice.userId]: 'join', [bob.userId]: 'join' })
    expect(await members('?not_membership=join')).toEqual({ [carol.userId]: 'invite' })
    expect(await members('?not_membership=leave')).toEqual(all)
    // Both together mean: either.
    expect(await members('?membership=join&not_membership=invite')).toEqual({
      [alice.userId]: 'join',
      [bob.userId]: 'join',
    })
    expect(await members('?membership=ban')).toEqual({})
    expect((await alice.ask('GET', inRoom(room, '/members?membership=owner'))).status).toBe(400)
  })

  it('at a time are those of that time', async () => {
    const { next_batch: before } = await alice.sync()
    await alice.call('POST', inRoom(room, '/ban'), { user_id: carol.userId })
    expect(await members(`?at=${before}`)).toMatchObject({ [carol.userId]: 'invite' })
    expect(await members()).toMatchObject({ [carol.userId]: 'ban' })
    expect(await members(`?at=${(await alice.sync()).next_batch}&not_membership=join`)).toEqual({
      [carol.userId]: 'ban',
    })
    const { next_batch: after } = await alice.sync()
    await alice.say(room, 'so be it')
    expect(await members(`?at=${after}`)).toMatchObject({ [carol.userId]: 'ban' })
    const { end } = await alice.call('GET', inRoom(room, '/messages?dir=b&limit=2'))
    expect(await members(`?at=${end}`)).toMatchObject({ [carol.userId]: 'invite' })
    expect((await alice.ask('GET', inRoom(room, '/members?at=yesterday'))).status).toBe(400)
  })

  it('at a time that one may not see are not told', async () => {
    const closed = await alice.createRoom({
      preset: 'public_chat',
      initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: 'joined' } }],
    })
    await alice.say(closed, 'between us')
    const { next_batch } = await alice.sync()
    await bob.join(closed)
    expect((await bob.ask('GET', inRoom(closed, `/members?at=${next_batch}`))).status).toBe(403)
    expect((await bob.ask('GET', inRoom(closed, '/members'))).status).toBe(200)
  })

  it('are for who left those of when they did, their own leaving included', async () => {
    const dave = await house.person('dave')
    await dave.join(room)
    await dave.leave(room)
    await alice.call('POST', inRoom(room, '/unban'), { user_id: carol.userId })
    expect(await members('', dave)).toMatchObject({ [dave.userId]: 'leave', [carol.userId]: 'ban' })
    expect(await members('')).toMatchObject({ [dave.userId]: 'leave', [carol.userId]: 'leave' })
  })

  it('that are joined are listed by name, whether they have one or not', async () => {
    await bob.call('PUT', `/profile/${bob.userId}/displayname`, { displayname: 'Bob' })
    await bob.setState(room, 'm.room.member', { membership: 'join', displayname: 'Bob' }, bob.userId)
    expect(await alice.call('GET', inRoom(room, '/joined_members'))).toEqual({
      joined: {
        [alice.userId]: { display_name: null, avatar_url: null },
        [bob.userId]: { display_name: 'Bob', avatar_url: null },
      },
    })
  })
})

describe('joined rooms', () => {
  it('are those one is in now', async () => {
    const dora = await house.person('dora')
    const rooms = async () => (await dora.call('GET', '/joined_rooms')).joined_rooms
    expect(await rooms()).toEqual([])
    const [first, second] = [await dora.createRoom(), await dora.createRoom()]
    await alice.invite(await alice.createRoom(), dora)
    expect((await rooms()).sort()).toEqual([first, second].sort())
    await dora.leave(first)
    expect(await rooms()).toEqual([second])
  })
})
