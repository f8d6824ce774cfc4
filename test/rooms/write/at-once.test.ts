import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Api, type Json, openApi } from '../../support/api.ts'
import { type Answer, type House, inRoom, openHouse, type Person } from '../people.ts'

const AT_ONCE = 32

let house: House
let host: Person
let guest: Person
let api: Api

beforeAll(async () => {
  house = await openHouse()
  host = await house.person('host')
  guest = await house.person('guest')
  api = openApi(house.server.baseUrl, { connections: AT_ONCE })
})

afterAll(async () => {
  await api.close()
  await house.close()
})

/** The same request, many times at once. */
const atOnce = (by: Person, method: string, path: string, body: object): Promise<Answer[]> =>
  Promise.all(Array.from({ length: AT_ONCE }, () => api.request(method, path, { token: by.token, body })))

async function eventsUnder(room: string, type: string, stateKey: string): Promise<Json[]> {
  const { chunk } = await host.call('GET', inRoom(room, '/messages?dir=f&limit=500'))
  return chunk.filter((event: Json) => event.type === type && event.state_key === stateKey)
}

/** What somebody's membership became, one after the other. */
const membershipsOf = async (room: string): Promise<string[]> =>
  (await eventsUnder(room, 'm.room.member', guest.userId)).map(({ content }) => content.membership)

const statusesOf = (answers: readonly Answer[]) => answers.map(({ status }) => status).sort()
const ALL_WELL = Array.from({ length: AT_ONCE }, () => 200)
const ONE_WELL = [200, ...Array.from({ length: AT_ONCE - 1 }, () => 403)]

interface Call {
  readonly what: string
  readonly by: () => Person
  readonly path: string
  /** How the guest came to where the call finds them. */
  readonly before: (room: string) => Promise<unknown>
  readonly body: () => object
  readonly becomes: readonly string[]
  readonly statuses: readonly number[]
}

const target = () => ({ user_id: guest.userId })
const nothing = () => ({})
const invite = (room: string) => host.invite(room, guest)
const join = (room: string) => guest.join(room)
const ban = (room: string) => host.call('POST', inRoom(room, '/ban'), target())

const CALLS: readonly Call[] = [
  {
    ...{ what: 'joins', by: () => guest, path: '/join', before: async () => {}, body: nothing },
    ...{ becomes: ['join'], statuses: ALL_WELL },
  },
  {
    ...{ what: 'acceptances of an invitation', by: () => guest, path: '/join', before: invite, body: nothing },
    ...{ becomes: ['invite', 'join'], statuses: ALL_WELL },
  },
  {
    ...{ what: 'invitations', by: () => host, path: '/invite', before: async () => {}, body: target },
    ...{ becomes: ['invite'], statuses: ALL_WELL },
  },
  {
    ...{ what: 'leaves', by: () => guest, path: '/leave', before: join, body: nothing },
    ...{ becomes: ['join', 'leave'], statuses: ALL_WELL },
  },
  {
    ...{ what: 'rejections', by: () => guest, path: '/leave', before: invite, body: nothing },
    ...{ becomes: ['invite', 'leave'], statuses: ALL_WELL },
  },
  {
    ...{ what: 'kicks', by: () => host, path: '/kick', before: join, body: target },
    ...{ becomes: ['join', 'leave'], statuses: ONE_WELL },
  },
  {
    ...{ what: 'bans', by: () => host, path: '/ban', before: join, body: target },
    ...{ becomes: ['join', 'ban'], statuses: ALL_WELL },
  },
  {
    ...{ what: 'liftings of a ban', by: () => host, path: '/unban', before: ban, body: target },
    ...{ becomes: ['ban', 'leave'], statuses: ONE_WELL },
  },
]

describe(`${AT_ONCE} at once`, () => {
  test.each(CALLS)('B7: $what write one event', async ({ by, path, before, body, becomes, statuses }) => {
    const room = await host.createRoom({ preset: 'public_chat' })
    await before(room)
    const answers = await atOnce(by(), 'POST', inRoom(room, path), body())
    expect(statusesOf(answers)).toEqual(statuses)
    expect(await membershipsOf(room)).toEqual(becomes)
  })

  test('B7: knocks write one event', async () => {
    const initial_state = [{ type: 'm.room.join_rules', content: { join_rule: 'knock' } }]
    const room = await host.createRoom({ initial_state })
    const answers = await atOnce(guest, 'POST', `/knock/${encodeURIComponent(room)}`, { reason: 'please' })
    expect(statusesOf(answers)).toEqual(ALL_WELL)
    expect(await membershipsOf(room)).toEqual(['knock'])
  })

  test.each(['join', 'invite', 'ban'])('B7: state PUTs of a membership %s write one event', async (membership) => {
    const room = await host.createRoom({ preset: 'public_chat' })
    const path = inRoom(room, `/state/m.room.member/${encodeURIComponent(guest.userId)}`)
    const answers = await atOnce(membership === 'join' ? guest : host, 'PUT', path, { membership })
    expect(statusesOf(answers)).toEqual(ALL_WELL)
    expect(new Set(answers.map(({ body }) => body.event_id)).size).toBe(1)
    expect(await membershipsOf(room)).toEqual([membership])
  })

  test('B7: state PUTs of a topic write one event', async () => {
    const room = await host.createRoom()
    const answers = await atOnce(host, 'PUT', inRoom(room, '/state/m.room.topic/'), { topic: 'one' })
    expect(statusesOf(answers)).toEqual(ALL_WELL)
    expect(new Set(answers.map(({ body }) => body.event_id)).size).toBe(1)
    expect(await eventsUnder(room, 'm.room.topic', '')).toHaveLength(1)
  })

  test('B7: joins by call and by state PUT write one event, and who is answered is in the room', async () => {
    const room = await host.createRoom({ preset: 'public_chat' })
    const state = inRoom(room, `/state/m.room.member/${encodeURIComponent(guest.userId)}`)
    const said = await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, i) => {
        const { token } = guest
        if (i % 2 === 0) await api.call('POST', inRoom(room, '/join'), { token, body: { reason: `for ${i}` } })
        else await api.call('PUT', state, { token, body: { membership: 'join', displayname: 'guest' } })
        return api.request('PUT', inRoom(room, `/send/m.room.message/${i}`), { token, body: { body: `${i}` } })
      }),
    )
    expect(statusesOf(said)).toEqual(ALL_WELL)
    expect((await membershipsOf(room))[0]).toBe('join')
    // Those that say what the room did not know yet are events of their own.
    const contents = (await eventsUnder(room, 'm.room.member', guest.userId)).map(({ content }) =>
      JSON.stringify(content),
    )
    expect(new Set(contents).size).toBe(contents.length)
  })

  test('B7: different topics are all written', async () => {
    const room = await host.createRoom()
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, i) =>
        api.request('PUT', inRoom(room, '/state/m.room.topic/'), { token: host.token, body: { topic: `topic ${i}` } }),
      ),
    )
    expect(statusesOf(answers)).toEqual(ALL_WELL)
    expect(await eventsUnder(room, 'm.room.topic', '')).toHaveLength(AT_ONCE)
  })
})
