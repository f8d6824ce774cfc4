import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_SLIDING_ROOMS, MAX_SLIDING_TIMELINE } from '../../../src/domain/limits/sliding-sync.ts'
import { type Answer, type House, openHouse, type Person } from '../../rooms/people.ts'
import type { Json } from '../../support/api.ts'
import { cpuMsOf } from '../../support/slowness.ts'
import { Connection, FORMS, wire } from './connection.ts'

let house: House
let alice: Person
const rooms: string[] = []

beforeAll(async () => {
  house = await openHouse()
  alice = await house.person('alice')
  for (let index = 0; index < 3; index++) rooms.push(await alice.createRoom({}))
})
afterAll(() => house.close())

describe.each(FORMS)('what makes no sense, or is too much, in the %s form', (form) => {
  const ask = async (body: Json) => {
    const { path } = wire(form, alice.userId, {})
    let answer: Answer | undefined
    const took = await cpuMsOf(async () => {
      answer = await alice.ask('POST', path, body)
    })
    expect(took).toBeLessThan(5_000)
    return answer!
  }
  const required = (state: Json[]) =>
    form === 'merged' ? { include: state.map(([type, state_key]: string[]) => ({ type, state_key })) } : state
  const list = (ranges: number[][], more: Json = {}) => ({
    timeline_limit: 1,
    required_state: required([]),
    ...(form === 'merged' ? { range: ranges[0] } : { ranges }),
    ...more,
  })
  const refuses = async (body: Json, codes = ['M_INVALID_PARAM']) => {
    const { status, body: error } = await ask(body)
    expect([status, codes.includes(error.errcode), error.errcode]).toEqual([
      error.errcode === 'M_TOO_LARGE' ? 413 : 400,
      true,
      error.errcode,
    ])
    expect(error.error.length).toBeGreaterThan(10)
  }

  it('takes the largest numbers, and ranges that overlap', async () => {
    const huge = await ask({ lists: { a: list([[0, 2 ** 53 - 1]]) } })
    expect(Object.keys(huge.body.rooms).sort()).toEqual([...rooms].sort())
    expect(huge.body.lists.a.count).toBe(3)
    const far = await ask({ lists: { a: list([[2 ** 53 - 2, 2 ** 53 - 1]]) } })
    expect(far.body).toMatchObject({ rooms: {}, lists: { a: { count: 3 } } })
    if (form === 'merged') return
    const overlapping = await ask({
      lists: {
        a: list([
          [0, 1],
          [1, 2],
          [0, 2],
        ]),
      },
    })
    expect(Object.keys(overlapping.body.rooms)).toHaveLength(3)
  })

  it('refuses ranges that are negative, backwards, or no pairs', async () => {
    for (const range of [[-1, 3], [3, 1], [1], [1, 2, 3], []]) await refuses({ lists: { a: list([range]) } })
    await refuses({ lists: { a: list([[0, 1.5]]) } }, ['M_BAD_JSON', 'M_INVALID_PARAM'])
    await refuses({ lists: { a: list([], { ...(form === 'merged' ? { range: 'all' } : { ranges: 'all' }) }) } }, [
      'M_BAD_JSON',
      'M_INVALID_PARAM',
    ])
  })

  it('refuses a hundred thousand keys of state at little cost, and ranges at every number', async () => {
    const patterns = Array.from({ length: 100_000 }, (_, index) => ['t', `${index}`])
    const keys = required(patterns)
    await refuses({ lists: { a: list([[0, 1]], { required_state: keys }) } }, ['M_INVALID_PARAM', 'M_TOO_LARGE'])
    const subscription = { timeline_limit: 1, required_state: keys }
    await refuses({ room_subscriptions: { [rooms[0]!]: subscription } }, ['M_INVALID_PARAM', 'M_TOO_LARGE'])
    for (const range of [
      [2 ** 53, 2 ** 53],
      [0, 2 ** 53],
      [0, 1e300],
    ]) {
      const { status, body } = await ask({ lists: { a: list([range]) } })
      expect([200, 400]).toContain(status)
      if (status === 200) expect(body.lists.a.count).toBe(3)
      else expect(['M_BAD_JSON', 'M_INVALID_PARAM']).toContain(body.errcode)
    }
  })

  it('refuses too many lists, subscriptions, patterns, filter values, and names that are too long', async () => {
    const many = (n: number, value: Json) =>
      Object.fromEntries(Array.from({ length: n }, (_, index) => [`k${index}`, value]))
    await refuses({ lists: many(101, list([[0, 1]])) })
    await refuses({ lists: many(10_000, list([[0, 1]])) })
    const subscription = { timeline_limit: 1, required_state: required([]) }
    await refuses({ room_subscriptions: many(form === 'merged' ? 101 : 1_001, subscription) })
    const patterns = Array.from({ length: 10_000 }, (_, index) => [`t${index}`, ''])
    await refuses({ lists: { a: list([[0, 1]], { required_state: required(patterns) }) } })
    const different = Object.fromEntries(
      Array.from({ length: 50 }, (_, n) => [
        `l${n}`,
        list([[0, 1]], { required_state: required(patterns.slice(n * 150, n * 150 + 150)) }),
      ]),
    )
    await refuses({ lists: different })
    await refuses({ lists: { a: list([[0, 1]], { filters: { tags: patterns.map(([type]) => type) } }) } })
    await refuses({ lists: { ['x'.repeat(256)]: list([[0, 1]]) } })
    await refuses({ conn_id: 'x'.repeat(256) })
    if (form === 'merged') await refuses({ lists: { 'no key!': list([[0, 1]]) } })
    else await refuses({ lists: { a: list(Array.from({ length: 101 }, () => [0, 1])) } })
  })

  it('refuses what is of another type', async () => {
    const bad = ['M_BAD_JSON', 'M_INVALID_PARAM', 'M_MISSING_PARAM']
    for (const body of [
      { lists: [] },
      { lists: { a: 1 } },
      { room_subscriptions: { '!a:b': [] } },
      { extensions: { typing: true } },
      { conn_id: 7 },
      { lists: { a: list([[0, 1]], { timeline_limit: -1 }) } },
      { lists: { a: list([[0, 1]], { timeline_limit: '5' }) } },
      { lists: { a: list([[0, 1]], { filters: { is_dm: 'x' } }) } },
    ]) {
      await refuses(body, bad)
    }
  })

  it('caps the timeline, and an odd pattern matches nothing', async () => {
    const long = 'x'.repeat(5_000)
    const answer = await ask({
      lists: {
        a: list([[0, 9]], {
          timeline_limit: 2 ** 40,
          required_state: required([
            [long, long],
            ['m.room.create', ''],
          ]),
        }),
      },
    })
    const section = answer.body.rooms[rooms[0]!]
    expect(section.timeline.length).toBeLessThanOrEqual(MAX_SLIDING_TIMELINE)
    expect(section.required_state.map(({ type }: Json) => type)).toEqual(['m.room.create'])
  })

  it('finds names by text that would be a pattern elsewhere', async () => {
    const filters = { room_name_like: `${'*a'.repeat(200)}(((` }
    expect((await ask({ lists: { a: list([[0, 9]], { filters }) } })).body.lists.a.count).toBe(0)
  })
})

it('gives a list without a range in answers of bounded size, which follow at once', async () => {
  const hoarder = await house.person('hoarder')
  const extra = 10
  for (let made = 0; made < MAX_SLIDING_ROOMS + extra; made += 31) {
    await Promise.all(Array.from({ length: 31 }, () => hoarder.createRoom({})))
  }
  const client = new Connection(hoarder, 'merged', 'whole')
  const request = { lists: { a: { limit: 0 } }, timeout: 60_000 }
  const first = await client.next(request)
  expect(Object.keys(first.rooms)).toHaveLength(MAX_SLIDING_ROOMS)
  expect(first.lists.a.count).toBe(MAX_SLIDING_ROOMS + extra)
  const begun = performance.now()
  const second = await client.next(request)
  expect(performance.now() - begun).toBeLessThan(30_000)
  const both = new Set([...Object.keys(first.rooms), ...Object.keys(second.rooms)])
  expect(both.size).toBe(MAX_SLIDING_ROOMS + extra)
  expect((await client.next({ ...request, timeout: 0 })).rooms).toEqual({})
})

it('comes to what is new behind more rooms than an answer has, where the user sees nothing of what happened', async () => {
  const hoarder = await house.person('reader')
  const spammer = await house.person('spammer')
  const quiet = await hoarder.createRoom({})
  const loud: string[] = []
  while (loud.length < MAX_SLIDING_ROOMS + 5) {
    const made = Array.from({ length: 31 }, () => hoarder.createRoom({ preset: 'public_chat' }))
    loud.push(...(await Promise.all(made)))
  }
  const inAll = async (act: (room: string) => Promise<unknown>) => {
    for (let at = 0; at < loud.length; at += 31) await Promise.all(loud.slice(at, at + 31).map(act))
  }
  await inAll((room) => spammer.join(room))
  const ignoring = { ignored_users: { [spammer.userId]: {} } }
  const own = `/user/${encodeURIComponent(hoarder.userId)}/account_data/m.ignored_user_list`
  await hoarder.call('PUT', own, ignoring)
  const client = new Connection(hoarder, 'merged', 'loud')
  const request = { lists: { a: { limit: 1 } } }
  for (let asked = 0; asked < 3; asked++) await client.next(request)
  expect((await client.next(request)).rooms).toEqual({})
  const event = await hoarder.say(quiet, 'behind them')
  await inAll((room) => spammer.say(room, 'spam'))
  const seen: string[] = []
  for (let asked = 0; asked < 3; asked++) {
    const { rooms: shown } = await client.next(request)
    for (const { timeline = [] } of Object.values<Json>(shown))
      seen.push(...timeline.map(({ event_id }: Json) => event_id))
  }
  expect(seen).toEqual([event])
})

it('refuses users without a device', async () => {
  const { status } = await house.api.request('POST', '/_matrix/client/v4/sync', { body: {} })
  expect(status).toBe(401)
})
