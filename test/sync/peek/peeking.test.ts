import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_EVENTS_PER_POLL, MAX_INITIAL_MESSAGES } from '../../../src/domain/limits/peeking.ts'
import { MAX_HELD_SYNCS_PER_DEVICE } from '../../../src/domain/limits.ts'
import { type House, idsOf, inRoom, openHouse, type Person, personOf, textsOf } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'
import { waitUntil } from '../../support/wait.ts'

let house: House
let host: Person
let stranger: Person
let guest: Person

beforeAll(async () => {
  house = await openHouse()
  host = await house.person('host')
  stranger = await house.person('stranger')
  const {
    user_id: userId,
    access_token: token,
    device_id: deviceId,
  } = await house.api.call('POST', '/register?kind=guest', { body: {} })
  guest = personOf(house.api, { userId, token, deviceId })
})

afterAll(() => house.close())

const enc = encodeURIComponent
const MEMORY = 'hearth_room_memory_bytes'
const open = (visibility = 'world_readable') =>
  host.createRoom({
    preset: 'public_chat',
    initial_state: [{ type: 'm.room.history_visibility', content: { history_visibility: visibility } }],
  })
const close = (room: string) => host.setState(room, 'm.room.history_visibility', { history_visibility: 'joined' })
const poll = (by: Person, room: string | undefined, from?: string, timeout = 0) => {
  const query = new URLSearchParams({ timeout: String(timeout), ...(room && { room_id: room }), ...(from && { from }) })
  return by.call('GET', `/events?${query}`)
}
const preview = (by: Person, room: string, limit?: number) =>
  by.ask('GET', inRoom(room, `/initialSync${limit === undefined ? '' : `?limit=${limit}`}`))
/** Waits until so many requests are held. */
const held = (count = 1) =>
  waitUntil('a held request', async () => {
    const line = (await house.server.metrics()).split('\n').find((one) => one.startsWith('hearth_waiting_syncs '))
    return Number(line?.split(' ').at(-1)) >= count
  })

describe('a preview', () => {
  it.each([
    ['a guest', () => guest],
    ['a user', () => stranger],
  ])('of a world-readable room is for %s too', async (_, who) => {
    const room = await open()
    for (let i = 0; i < 30; i++) await host.say(room, `${i}`)
    const { status, body } = await preview(who(), room, 20)
    expect(status).toBe(200)
    expect(Object.keys(body).sort()).toEqual(['account_data', 'messages', 'room_id', 'state', 'visibility'])
    expect(body).toMatchObject({ room_id: room, visibility: 'private', account_data: [] })
    expect(textsOf(body.messages.chunk)).toEqual(Array.from({ length: 20 }, (_, i) => `${i + 10}`))
    expect(body.messages.chunk[0].room_id).toBe(room)
    expect(body.state.map(({ type }: Json) => type)).toContain('m.room.create')
    // Back from its start, and on from its end.
    const back = await who().call('GET', inRoom(room, `/messages?dir=b&limit=100&from=${enc(body.messages.start)}`))
    expect(textsOf(back.chunk)).toEqual(Array.from({ length: 10 }, (_, i) => `${9 - i}`))
    await host.say(room, 'later')
    expect(textsOf((await poll(who(), room, body.messages.end)).chunk)).toEqual(['later'])
    const forth = await who().call('GET', inRoom(room, `/messages?dir=f&from=${enc(body.messages.end)}`))
    expect(textsOf(forth.chunk)).toEqual(['later'])
  })

  it('is of a bounded length', async () => {
    const room = await open()
    for (let i = 0; i < MAX_INITIAL_MESSAGES + 1; i++) await host.say(room, `${i}`)
    expect((await preview(stranger, room, 1_000_000)).body.messages.chunk).toHaveLength(MAX_INITIAL_MESSAGES)
    expect((await preview(stranger, room, 0)).body.messages.chunk).toEqual([])
    expect((await preview(stranger, room)).body.messages.chunk).toHaveLength(20)
    expect((await preview(stranger, room, -1)).status).toBe(400)
  })

  it('shows members what they keep for the room, and their membership', async () => {
    const room = await host.createRoom({ visibility: 'public', name: 'Listed' })
    const tags = { tags: { 'm.favourite': {} } }
    await host.call('PUT', `/user/${host.userId}/rooms/${enc(room)}/account_data/m.tag`, tags)
    expect((await preview(host, room)).body).toMatchObject({
      membership: 'join',
      visibility: 'public',
      account_data: [{ type: 'm.tag', content: tags }],
    })
  })

  it.each(['shared', 'invited', 'joined'])('of a room with %s history is refused, as of none', async (visibility) => {
    const room = await open(visibility)
    for (const person of [stranger, guest]) {
      for (const path of [inRoom(room, '/initialSync'), `/events?room_id=${enc(room)}`]) {
        const answer = await person.ask('GET', path)
        expect([answer.status, answer.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
        expect(await person.ask('GET', path.replace(enc(room), enc('!none:localhost')))).toEqual(answer)
      }
    }
  })

  it('bundles edits and threads with what it shows, as all readers do', async () => {
    const room = await open()
    const { end } = await poll(stranger, room)
    const root = await host.say(room, 'root')
    const relates_to = { rel_type: 'm.thread', event_id: root }
    const reply = { msgtype: 'm.text', body: 'reply', 'm.relates_to': relates_to }
    await host.call('PUT', inRoom(room, '/send/m.room.message/reply'), reply)
    for (const events of [
      (await preview(stranger, room)).body.messages.chunk,
      (await poll(stranger, room, end)).chunk,
    ]) {
      const shown = events.find(({ event_id }: Json) => event_id === root)
      expect(shown.unsigned['m.relations']['m.thread']).toMatchObject({ count: 1, current_user_participated: false })
    }
  })

  it('costs one room, however many the user is in', async () => {
    const busy = await house.person('busy')
    const room = await busy.createRoom()
    for (let i = 0; i < 40; i++) await busy.createRoom()
    await house.restart()
    const loaded = async () => {
      const line = (await house.server.metrics()).split('\n').find((one) => one.startsWith(`${MEMORY}{kind="rooms"}`))
      return Number(line!.split(' ').at(-1))
    }
    const before = await loaded()
    await preview(busy, room)
    const one = (await loaded()) - before
    expect(one).toBeGreaterThan(0)
    await busy.call('GET', '/initialSync')
    expect((await loaded()) - before).toBeGreaterThan(30 * one)
  })
})

describe('events of one room', () => {
  it('are followed from now on by who gives no token', async () => {
    const room = await open()
    await host.say(room, 'before')
    const first = await poll(stranger, room)
    expect(first).toEqual({ start: first.end, end: first.end, chunk: [] })
    const waiting = poll(stranger, room, first.end, 20_000)
    await held()
    await host.say(room, 'after')
    const { start, end, chunk } = await waiting
    expect([start, textsOf(chunk)]).toEqual([first.end, ['after']])
    expect(chunk[0]).toMatchObject({ room_id: room, event_id: expect.any(String) })
    expect((await poll(stranger, room, end)).chunk).toEqual([])
  })

  it('are of this room alone', async () => {
    const [room, other] = [await open(), await open()]
    const { end } = await poll(stranger, room)
    await host.say(other, 'there')
    await host.say(room, 'here')
    expect(textsOf((await poll(stranger, room, end)).chunk)).toEqual(['here'])
  })

  it('come in bounded answers, without loss or repetition', async () => {
    const room = await open()
    let { end } = await poll(stranger, room)
    const sent: string[] = []
    for (let i = 0; i < 2 * MAX_EVENTS_PER_POLL + 5; i++) sent.push(await host.say(room, `${i}`))
    const seen: string[] = []
    const sizes: number[] = []
    for (;;) {
      const answer = await poll(stranger, room, end)
      if (answer.chunk.length === 0) break
      seen.push(...idsOf(answer.chunk))
      sizes.push(answer.chunk.length)
      end = answer.end
    }
    expect(seen).toEqual(sent)
    expect(sizes).toEqual([MAX_EVENTS_PER_POLL, MAX_EVENTS_PER_POLL, 5])
  })

  it('end when the history is closed, also for who waits', async () => {
    const room = await open()
    const { end } = await poll(stranger, room)
    const waiting = poll(stranger, room, end, 20_000)
    await held()
    await close(room)
    await host.say(room, 'secret')
    const last = await waiting
    expect(textsOf(last.chunk)).toEqual([])
    const again = await stranger.ask('GET', `/events?room_id=${enc(room)}&from=${enc(last.end)}`)
    expect([again.status, again.body.errcode]).toEqual([403, 'M_FORBIDDEN'])
    expect((await preview(stranger, room)).status).toBe(403)
  })

  it.each(['nonsense', 't5', 's', '-1'])('are not read from %s', async (from) => {
    const room = await open()
    const answer = await stranger.ask('GET', `/events?room_id=${enc(room)}&from=${enc(from)}`)
    expect([answer.status, answer.body.errcode]).toEqual([400, 'M_INVALID_PARAM'])
    expect((await stranger.ask('GET', '/events?room_id=nonsense')).status).toBe(400)
  })
})

describe('events of all rooms', () => {
  it('come from every room of the user, with their own memberships', async () => {
    const person = await house.person('follower')
    const [one, two] = [await open('shared'), await open('shared')]
    for (const room of [one, two]) await person.join(room)
    const { end } = await poll(person, undefined)
    await host.say(one, 'one')
    await host.say(two, 'two')
    await host.say(await open(), 'elsewhere')
    const first = await poll(person, undefined, end)
    expect(textsOf(first.chunk)).toEqual(['one', 'two'])
    expect(first.chunk.map(({ room_id }: Json) => room_id)).toEqual([one, two])
    const waiting = poll(person, undefined, first.end, 20_000)
    await held()
    const third = await host.createRoom()
    await host.invite(third, person)
    const invited = (await waiting).chunk
    expect(invited).toMatchObject([{ type: 'm.room.member', state_key: person.userId, room_id: third }])
    const before = (await poll(person, undefined)).end
    await host.say(one, 'last')
    await host.call('POST', inRoom(one, '/kick'), { user_id: person.userId })
    await host.say(one, 'unseen')
    const { chunk } = await poll(person, undefined, before)
    expect(textsOf(chunk)).toEqual(['last'])
    expect(chunk.at(-1)).toMatchObject({ content: { membership: 'leave' } })
  })

  it('are held no longer than syncs: with too many, the oldest ends', async () => {
    const person = await house.person('greedy')
    await person.createRoom()
    const { end } = await poll(person, undefined)
    let isFirstOver = false
    const first = poll(person, undefined, end, 25_000).then(() => {
      isFirstOver = true
    })
    await held()
    expect(isFirstOver).toBe(false)
    const others = Array.from({ length: MAX_HELD_SYNCS_PER_DEVICE }, () => poll(person, undefined, end, 25_000))
    await first
    await person.createRoom()
    await Promise.all(others)
  })
})

describe('an initial sync', () => {
  it('has all rooms, invitations, and on request those that were left', async () => {
    const person = await house.person('returning')
    const [joined, left, invited] = [await open(), await open('shared'), await host.createRoom()]
    for (const room of [joined, left]) await person.join(room)
    await person.leave(left)
    await host.invite(invited, person)
    await person.call('PUT', `/user/${person.userId}/account_data/org.example.x`, { x: 1 })
    const body = await person.call('GET', '/initialSync?limit=1')
    expect(body.account_data).toEqual([{ type: 'org.example.x', content: { x: 1 } }])
    expect(body.presence).toEqual(expect.any(Array))
    const summary = body.rooms.map(({ room_id, membership }: Json) => [room_id, membership])
    expect(summary.sort()).toEqual(
      [
        [joined, 'join'],
        [invited, 'invite'],
      ].sort(),
    )
    expect(body.rooms.find((room: Json) => room.room_id === joined).messages.chunk).toHaveLength(1)
    await host.say(joined, 'news')
    expect(textsOf((await poll(person, undefined, body.end)).chunk)).toEqual(['news'])
    const all = (await person.call('GET', '/initialSync?archived=true')).rooms
    expect(all.find((room: Json) => room.room_id === left).membership).toBe('leave')
  })
})
