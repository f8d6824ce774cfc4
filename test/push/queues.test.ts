import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { ByteBudget } from '../../src/core/byte-budget.ts'
import type { UserId } from '../../src/core/ids.ts'
import { MAX_NOTICES_IN_MEMORY, MAX_UNEVALUATED_EVENTS } from '../../src/domain/limits/pushers.ts'
import type { Notice, RoomNews, Weight } from '../../src/domain/pushing/notice.ts'
import { createPushStream } from '../../src/domain/pushing/push-stream.ts'
import { type MissedNotices, PusherQueue } from '../../src/domain/pushing/pusher-queue.ts'
import { createEventCache } from '../../src/domain/rooms/room/event-cache.ts'
import type { RoomEvent } from '../../src/domain/rooms/room/room-event.ts'
import type { GatewayAnswer } from '../../src/outbound/push-gateway.ts'
import type { PusherRow } from '../../src/store/accounts/pushers.ts'
import { createRoom, join, openApi, register, sendText } from '../support/api.ts'
import { startServer } from '../support/server.ts'
import { waitUntil } from '../support/wait.ts'
import { setPusher } from './gateway.ts'

const log = pino({ level: 'silent' })
const OUTCOME = { notify: true, highlight: false, sound: undefined, tweaks: {}, actions: ['notify'] }
/** Some matter more than others, and few most. */
const WEIGHTS: readonly Weight[] = [0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 3]
const roomOf = (position: number) => ((position * 7) % 5) % 3
const weightAt = (position: number) => WEIGHTS[(position * 5) % WEIGHTS.length]!
const noticeAt = (position: number): Notice => ({
  ...{ roomNid: roomOf(position), eventNid: position, position, isInvitation: false, outcome: OUTCOME },
  ...{ weight: weightAt(position), at: Number.MAX_SAFE_INTEGER },
})
const ROW: PusherRow = {
  ...{ pusher_nid: 1, user_nid: 1, user_id: '@bob:localhost' as UserId, app_id: 'app', pushkey: 'key', kind: 'http' },
  ...{ device_id: null, app_display_name: '', device_display_name: '', profile_tag: null, lang: 'en', set_at: 0 },
  ...{ data: '{"url":"https://push.example.org/_matrix/push/v1/notify"}', is_enabled: true, position: 0, lags: false },
  ...{ failures: 0, failing_since: null, retry_at: 0, mailed_at: null, pause_ms: 0 },
}

/** Events in a stream. */
const MOST = 600

/** Numbers that look random, the same at each run. */
function dice(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((state / 2 ** 31) * sides)
  }
}

interface World {
  readonly queue: PusherQueue
  /** Positions that the gateway has taken. */
  readonly taken: number[]
  /** Positions of events that are redacted. */
  readonly gone: Set<number>
  /** The most notices in memory at a time. */
  most: number
  offer(): void
}

/**
 * A queue over a stream in which every event notifies its user.
 * @param places how many notices fit into memory in all
 * @param step how many milliseconds go by, at most, from one look at the clock to the next
 * @param badge counts what is unread
 */
function open(
  roll: (sides: number) => number,
  places = Number.POSITIVE_INFINITY,
  step = 10_000_000,
  badge = async () => 1,
): World {
  const taken: number[] = []
  const gone = new Set<number>()
  let now = 0
  let evaluated = 0
  let held = 0
  const answers: readonly GatewayAnswer[] = [
    { kind: 'taken', rejected: [] },
    { kind: 'taken', rejected: [] },
    { kind: 'refused', status: 502 },
    { kind: 'unanswered', detail: '' },
  ]
  async function readMissed(_: PusherRow, after: number, upTo: number, roomNid?: number): Promise<MissedNotices> {
    // More is offered while it reads.
    for (let times = roll(8); times > 0; times--) {
      await Promise.resolve()
      if (evaluated < MOST && roll(3) === 0) world.offer()
    }
    const size = 1 + roll(100)
    const end = Math.min(upTo, after + size)
    const all = Array.from({ length: Math.max(0, end - after) }, (_, index) => noticeAt(after + 1 + index))
    const notices = roomNid === undefined ? all : all.filter((notice) => notice.roomNid === roomNid)
    return { notices, upTo: end, isFull: end < upTo }
  }
  const queue = new PusherQueue(
    {
      ...{ log, readMissed, evaluated: () => evaluated, badge, countAgain: () => {} },
      ...{ ready: () => {}, changed: () => {} },
      clock: { now: () => (now += 1 + roll(step)) },
      random: { bytes: (count) => Buffer.alloc(count) },
      bodies: { ofEvent: async ({ nid }) => String(nid), ofCounts: () => 'counts' },
      wanted: async (_, { eventNid }) => (gone.has(eventNid) ? undefined : ({ nid: eventNid } as RoomEvent)),
      async notify(_, body) {
        const answer = answers[roll(answers.length)]!
        if (answer.kind === 'taken') taken.push(Number(body))
        return answer
      },
      takePlace() {
        if (held >= places) return false
        held += 1
        world.most = Math.max(world.most, held)
        return true
      },
      freePlaces(count) {
        held = Math.max(0, held - count)
      },
      rejected: async () => {},
    },
    ROW,
    false,
  )
  const world: World = {
    ...{ queue, taken, gone, most: 0 },
    offer() {
      queue.offer(noticeAt(evaluated + 1))
      evaluated += 1
    },
  }
  return world
}

interface Play {
  /** Events that come at a time, at most. */
  readonly burst: number
  /** Of how many, at most, the newest are redacted now and then. */
  readonly redacted?: number
}

async function play(world: World, roll: (sides: number) => number, count: number, plan: Play): Promise<void> {
  for (let offered = 0; offered < count; ) {
    for (let burst = 1 + roll(plan.burst); burst > 0 && offered < count; burst--, offered++) world.offer()
    for (let turns = roll(20); turns > 0; turns--) await world.queue.run()
    for (let left = roll(1 + (plan.redacted ?? 0)); left > 0; left--) world.gone.add(offered - roll(40))
  }
  for (let turns = 0; world.queue.dueAt !== undefined; turns++) {
    if (turns > 20_000) throw new Error(`it sends no more after ${world.taken.length}`)
    await world.queue.run()
  }
}

/** Positions of which nothing was sent: neither they, nor one that came later in their room and matters as much. */
function unsent({ taken, gone }: World, count: number): number[] {
  const all = Array.from({ length: count }, (_, index) => index + 1)
  const isSent = (position: number) =>
    taken.some((one) => one >= position && roomOf(one) === roomOf(position) && weightAt(one) >= weightAt(position))
  return all.filter((position) => !gone.has(position) && !isSent(position))
}

const SEEDS = Array.from({ length: 40 }, (_, seed) => seed)

describe('the queue of a pusher', () => {
  it.each(SEEDS)('sends each at an easy pace, and keeps the order (seed %i)', async (seed) => {
    const roll = dice(seed)
    const world = open(roll)
    await play(world, roll, 500, { burst: 1 })
    expect(world.taken).toEqual(Array.from({ length: 500 }, (_, index) => index + 1))
    expect(world.queue.sentUpTo).toBeUndefined()
  })

  it.each(SEEDS)(
    'leaves nothing unsent in a flood, repeats nothing and keeps the order, and sends less (seed %i)',
    async (seed) => {
      const roll = dice(seed)
      const world = open(roll, seed % 2 ? Number.POSITIVE_INFINITY : roll(40), 40)
      await play(world, roll, 500, { burst: 30 })
      expect(world.taken).toEqual([...new Set(world.taken)].toSorted((a, b) => a - b))
      expect(unsent(world, 500)).toEqual([])
      expect(world.taken.length).toBeLessThan(450)
      expect(world.queue.sentUpTo).toBeUndefined()
    },
  )

  it.each(SEEDS)('tells of what others stood for that were redacted (seed %i)', async (seed) => {
    const roll = dice(seed)
    const world = open(roll, seed % 2 ? Number.POSITIVE_INFINITY : roll(40), 40)
    await play(world, roll, 500, { burst: 30, redacted: 40 })
    for (const room of [0, 1, 2]) {
      const taken = world.taken.filter((position) => roomOf(position) === room)
      expect(taken).toEqual([...new Set(taken)].toSorted((a, b) => a - b))
    }
    expect(unsent(world, 500)).toEqual([])
    expect(world.queue.sentUpTo).toBeUndefined()
  })

  it('tells of a badge once it can be counted', async () => {
    let failures = 1
    const { queue, taken } = open(dice(1), 1, 1, async () => {
      if (failures-- > 0) throw new Error('the database is away')
      return 1
    })
    queue.badgeChanged()
    for (let turns = 0; turns < 20 && taken.length === 0; turns++) await queue.run()
    expect(taken).toHaveLength(1)
    expect(queue.dueAt).toBeUndefined()
  })

  it('holds a limited number of notices, and fewer if all pushers together hold too many', async () => {
    const roll = dice(1)
    const world = open(roll)
    for (let count = 0; count < 10 * MAX_NOTICES_IN_MEMORY; count++) world.offer()
    expect([world.most, world.queue.isBehind]).toEqual([MAX_NOTICES_IN_MEMORY, false])
    const crowded = open(roll, 3)
    for (let count = 0; count < 10; count++) crowded.offer()
    expect([crowded.most, crowded.queue.isBehind, crowded.queue.sentUpTo]).toEqual([3, true, 0])
  })
})

it('what waits to be evaluated is limited: what is over is read from the stream', async () => {
  const server = await startServer()
  const api = openApi(server.baseUrl)
  try {
    const [alice, bob] = [await register(api, 'alice'), await register(api, 'bob')]
    const room = await createRoom(api, alice.token, { preset: 'public_chat' })
    await join(api, bob.token, room)
    await setPusher(api, bob, { url: 'https://push.example.org/_matrix/push/v1/notify' }, 'key')
    const wanted = new Set<string>()
    for (let count = 0; count < 5; count++) wanted.add(await sendText(api, alice.token, room, `${count}`, 'x'))
    const { db } = server.database
    const [{ last } = { last: 0 }] = await db.query<{ last: number }>('SELECT max(event_nid) AS last FROM event')
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const handed: RoomNews[] = []
    const stream = createPushStream({
      ...{ db, log, events: createEventCache({ db, budget: new ByteBudget(1_000_000) }) },
      async handOn(news) {
        handed.push(news)
        if (handed.length === 1) await released
      },
    })
    stream.start(last - 1, last - 1)
    const newsAt = (upTo: number): RoomNews => ({ roomNid: -1, events: [], invitations: [], upTo })
    stream.add(newsAt(last - 1))
    await waitUntil('the first news', () => handed.length === 1)
    // These are dropped, and what is in the stream is not.
    for (let count = 0; count <= MAX_UNEVALUATED_EVENTS; count++) stream.add(newsAt(last - 1))
    stream.reached(last)
    release()
    await waitUntil('the end of the stream', () => stream.position() >= last)
    expect(handed).toHaveLength(2)
    expect(handed[1]!.events.map(({ id }) => id)).toEqual([[...wanted].at(-1)])
    await stream.close()
  } finally {
    await api.close()
    await server.close()
  }
})
