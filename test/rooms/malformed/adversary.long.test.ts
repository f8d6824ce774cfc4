import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BuiltEvent, buildEvent, type EventDraft } from '../../../src/core/event/build.ts'
import { type EventReference, referencedId } from '../../../src/core/event/format.ts'
import type { EventId, UserId } from '../../../src/core/ids.ts'
import { type RoomVersion, roomVersion } from '../../../src/core/room-version.ts'
import {
  MAX_CLAIMED_EVENTS,
  MAX_CLAIMED_STATES,
  MAX_FETCHED_AUTH_EVENTS,
  MAX_FETCHES,
  MAX_MISSING_EVENTS,
} from '../../../src/domain/limits.ts'
import type { Received } from '../../../src/domain/rooms/receive/received.ts'
import { MEMBER } from '../../support/malformed.ts'
import { KEYS, TS } from '../../support/malformed-room.ts'
import { unknownReference } from './forgery.ts'
import { inspect } from './inspection.ts'
import { startWatchedServer, type WatchedServer } from './server.ts'
import { BETA, jsonOf, WatchedRoom } from './watched-room.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

let server: WatchedServer
beforeAll(async () => {
  server = await startWatchedServer()
})
afterAll(() => server.close())

/** What came of an attack. */
interface Outcome {
  readonly received: readonly Received[]
  readonly questions: { missingEvents: number; stateIds: number; events: number }
  /** Ids that were asked for one by one. */
  readonly idsAsked: number
  readonly rows: number
  readonly ms: number
}

/** What it cost the server besides. */
interface Cost extends Outcome {
  readonly heapMb: number
}

/** An adversary that has an answer to everything. */
interface Adversary {
  event?(id: EventId): BuiltEvent | undefined
  missing?(latest: readonly EventId[]): readonly BuiltEvent[]
  state?(): { state: readonly EventId[]; authChain: readonly EventId[] }
}

let opened = 0

async function openRoom(version: RoomVersion): Promise<WatchedRoom> {
  const room = new WatchedRoom(version, `siege-${++opened}`)
  await room.open(server)
  return room
}

async function rowsOf(): Promise<number> {
  const [row] = await server.db.query<{ count: number }>('SELECT count(*)::int AS count FROM event')
  return row!.count
}

async function attack(room: WatchedRoom, adversary: Adversary, events: readonly BuiltEvent[]): Promise<Outcome> {
  const questions = { missingEvents: 0, stateIds: 0, events: 0 }
  let idsAsked = 0
  server.answers.set(room.id, {
    async missingEvents(_, __, { latest }) {
      questions.missingEvents++
      return (adversary.missing?.(latest) ?? []).map(jsonOf)
    },
    async stateIds() {
      questions.stateIds++
      return adversary.state?.()
    },
    async events(_, __, ids) {
      questions.events++
      idsAsked += ids.length
      return ids.flatMap((id) => adversary.event?.(id) ?? room.base.events.get(id) ?? []).map(jsonOf)
    },
  })
  const before = { rows: await rowsOf(), at: performance.now() }
  const received = await server.engine.receiver.receive(BETA, room.id, events.map(jsonOf))
  const ms = performance.now() - before.at
  server.answers.delete(room.id)
  expect(server.errors).toEqual([])
  return { received, questions, idsAsked, rows: (await rowsOf()) - before.rows, ms }
}

async function attackForItsCost(...what: Parameters<typeof attack>): Promise<Cost> {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const outcome = await attack(...what)
  collectGarbage()
  return { ...outcome, heapMb: (process.memoryUsage().heapUsed - before) / 2 ** 20 }
}

/** The member under some name, citing some other event as their membership. */
function rename(
  room: WatchedRoom,
  name: string,
  membership: EventReference,
  more: Partial<EventDraft> = {},
): BuiltEvent {
  const { version, base } = room
  const { create, levels, joinRules } = base.fixture.references
  return buildEvent(
    version,
    {
      type: 'm.room.member',
      sender: MEMBER as UserId,
      state_key: MEMBER,
      room_id: room.id,
      event_id: `$${name}:beta.test` as EventId,
      content: { membership: 'join', displayname: name },
      origin_server_ts: TS,
      depth: 100,
      prev_events: room.latest,
      auth_events: [...(version.createIsAuthEvent ? [create] : []), levels, membership, joinRules],
      ...more,
    },
    BETA,
    KEYS['beta.test'],
  )
}

/** A chain of auth events that begins with one that nobody has, its newest last. */
function chainOf(room: WatchedRoom, length: number): BuiltEvent[] {
  const chain = [rename(room, `${room.base.fixture.label}-first`, unknownReference(room.version, 'root'))]
  while (chain.length < length)
    chain.push(rename(room, `${room.base.fixture.label}-chain-${chain.length}`, chain.at(-1)!.reference))
  return chain
}

const byId = (events: readonly BuiltEvent[]) => {
  const map = new Map(events.map((event) => [event.eventId, event]))
  return (id: EventId) => map.get(id)
}

const SOME_VERSIONS = ['1', '2', '6', '12'].map((id) => roomVersion(id)!)

const idsByFormat = new Map<RoomVersion['eventIdFormat'], readonly EventId[]>()

/** As many ids as may be told, in the format of the version, made once. */
function idsOfNothing(version: RoomVersion): readonly EventId[] {
  const ids =
    idsByFormat.get(version.eventIdFormat) ??
    Array.from({ length: MAX_CLAIMED_EVENTS }, (_, n) => referencedId(unknownReference(version, `told-${n}`)))
  idsByFormat.set(version.eventIdFormat, ids)
  return ids
}

function mustBeCheap({ heapMb, ms }: Cost, limits: { readonly heapMb?: number; readonly ms?: number } = {}): void {
  expect(heapMb).toBeLessThan(limits.heapMb ?? 24)
  expect(ms).toBeLessThan(limits.ms ?? 15_000)
}

describe.each(SOME_VERSIONS)('in version $id', (version) => {
  it('an auth chain without end is given up, for all events of a transaction together', async () => {
    const room = await openRoom(version)
    const chain = chainOf(room, 1_500)
    const { levels, create } = room.base.fixture.references
    const auth = (membership: EventReference) => [...(version.createIsAuthEvent ? [create] : []), levels, membership]
    const events = [
      ...Array.from({ length: 25 }, (_, n) => room.say({ auth: auth(chain.at(-1 - n)!.reference) })),
      ...room.sayMany(25),
    ]
    const cost = await attackForItsCost(room, { event: byId(chain) }, events)
    expect(cost.received.slice(0, 25).map(({ kind, reason }) => `${kind}: ${reason}`)).toEqual(
      Array.from({ length: 25 }, () => 'dropped: its auth events could not be had'),
    )
    expect(cost.received.slice(25).map(({ kind }) => kind)).toEqual(Array.from({ length: 25 }, () => 'accepted'))
    expect(cost.idsAsked).toBeLessThanOrEqual(MAX_FETCHED_AUTH_EVENTS)
    expect(cost.rows).toBe(25)
    mustBeCheap(cost)
    events.slice(25).forEach((event, n) => {
      room.took(cost.received[25 + n]!, event.reference, event.pdu)
    })
    await inspect(
      server,
      room,
      [...chain, ...events].map(({ eventId }) => eventId),
    )
  })

  it('a history without end is given up', async () => {
    const room = await openRoom(version)
    const history: BuiltEvent[] = [room.say({ prev: [unknownReference(version, 'long ago')] })]
    while (history.length < 3_000) history.push(room.say({ prev: [history.at(-1)!.reference] }))
    const places = new Map(history.map(({ eventId }, place) => [eventId, place]))
    const missing = (latest: readonly EventId[]) => {
      const oldest = Math.min(...latest.map((id) => places.get(id)!))
      return history.slice(Math.max(oldest - MAX_MISSING_EVENTS, 0), oldest)
    }
    const cost = await attackForItsCost(room, { missing }, [history.at(-1)!, ...room.sayMany(5)])
    expect(cost.received.map(({ kind, reason }) => `${kind}: ${reason}`)).toEqual([
      'dropped: what it builds on could not be had',
      ...Array.from({ length: 5 }, () => 'accepted: undefined'),
    ])
    expect(cost.questions.missingEvents).toBeLessThanOrEqual(MAX_FETCHES)
    expect(cost.questions.stateIds).toBeLessThanOrEqual(MAX_CLAIMED_STATES)
    expect(cost.rows).toBe(5)
    mustBeCheap(cost)
  })

  it('answers that are longer than what was asked for are cut', async () => {
    const room = await openRoom(version)
    const flood = Array.from({ length: 2_000 }, (_, n) => room.say({ prev: [unknownReference(version, `flood ${n}`)] }))
    const events = [room.say({ prev: [unknownReference(version, 'behind a flood')] })]
    const cost = await attackForItsCost(room, { missing: () => flood }, events)
    expect(cost.received[0]).toMatchObject({ kind: 'dropped', reason: 'what it builds on could not be had' })
    expect(cost.questions.missingEvents).toBeLessThanOrEqual(MAX_FETCHES)
    expect(cost.questions.stateIds).toBeLessThanOrEqual(MAX_CLAIMED_STATES)
    expect(cost.rows).toBe(0)
    mustBeCheap(cost)
  })

  it('a told state of 200,000 events that nobody has is not asked for to the end', async () => {
    const room = await openRoom(version)
    const ids = idsOfNothing(version)
    const events = Array.from({ length: 50 }, (_, n) => room.say({ prev: [unknownReference(version, `gap ${n}`)] }))
    for (const more of [0, 1]) {
      const state = more === 0 ? ids : [...ids, referencedId(unknownReference(version, 'one too many'))]
      const cost = await attackForItsCost(room, { state: () => ({ state, authChain: [] }) }, events)
      expect(new Set(cost.received.map(({ reason }) => reason))).toEqual(
        new Set(['what it builds on could not be had']),
      )
      expect(cost.questions.stateIds).toBeLessThanOrEqual(MAX_CLAIMED_STATES)
      expect(cost.questions.events).toBeLessThanOrEqual(more === 0 ? MAX_CLAIMED_STATES : 0)
      expect(cost.rows).toBe(0)
      mustBeCheap(cost, { heapMb: 64 })
    }
  })

  it('more auth and previous events than there may be are refused, with the reason', async () => {
    const room = await openRoom(version)
    const tips = Array.from({ length: 21 }, () => room.say())
    const spread = await attack(room, {}, tips)
    expect(new Set(spread.received.map(({ kind }) => kind))).toEqual(new Set(['accepted']))
    for (const [at, tip] of tips.entries()) room.took(spread.received[at]!, tip.reference, tip.pdu)
    const references = tips.map(({ reference }) => reference)
    const prev = references.slice(0, 1)
    const { create, levels, member } = room.base.fixture.references
    const usual = version.createIsAuthEvent ? [create, levels, member] : [levels, member]
    const tenAuth = [...usual, ...references].slice(0, 10)
    const { received } = await attack(room, {}, [
      room.say({ prev: references }),
      room.say({ prev, auth: [...tenAuth, references[20]!] }),
      room.say({ prev, auth: tenAuth }),
      room.say({ prev, auth: [...usual, levels] }),
      room.say({ prev, auth: [...usual, member, member, member, member, member] }),
    ])
    expect(received.map(({ kind }) => kind)).toEqual(['dropped', 'dropped', 'rejected', 'rejected', 'rejected'])
    expect(received.map(({ reason }) => reason!.replace(/rule [0-9.]+/, 'rule'))).toEqual([
      'prev_events has more than 20 entries',
      'auth_events has more than 10 entries',
      'by its auth events: The event cites an auth event of type m.room.message that does not belong there. (rule)',
      'by its auth events: The event cites an auth event of type m.room.power_levels that it cites already. (rule)',
      'by its auth events: The event cites an auth event of type m.room.member that it cites already. (rule)',
    ])
    const twenty = room.say({ prev: references.slice(0, 20) })
    const { received: merged } = await attack(room, {}, [twenty])
    expect(merged[0]!.kind).toBe('accepted')
    room.took(merged[0]!, twenty.reference, twenty.pdu)
    await room.mend(server)
    await inspect(server, room, [])
  })

  it('the deepest event there can be leaves room for more', async () => {
    const room = await openRoom(version)
    const bomb = rename(room, `${room.base.fixture.label}-bomb`, room.base.fixture.references.member, {
      depth: Number.MAX_SAFE_INTEGER,
    })
    const { received } = await attack(room, {}, [bomb])
    expect(received[0]!.kind).toBe('accepted')
    room.took(received[0]!, bomb.reference, bomb.pdu)
    await inspect(server, room, [])
    await room.mend(server)
    const after = room.say()
    const { received: later } = await attack(room, {}, [after])
    expect(later[0]).toMatchObject({ kind: 'accepted' })
  })
})

describe.each(['1', '2'].map((id) => roomVersion(id)!))('in version $id, where ids are no hashes', (version) => {
  it('a circle of a thousand auth events is no auth chain', async () => {
    const room = await openRoom(version)
    const { label } = room.base.fixture
    const named = (n: number) => unknownReference(version, `${label}-circle-${n % 900}`)
    const circle = Array.from({ length: 900 }, (_, n) => rename(room, `${label}-circle-${n}`, named(n + 1)))
    const { create, levels } = room.base.fixture.references
    const cost = await attackForItsCost(room, { event: byId(circle) }, [
      room.say({ auth: [create, levels, circle[0]!.reference] }),
    ])
    expect(cost.received[0]).toMatchObject({ kind: 'dropped', reason: 'its auth events could not be had' })
    expect(cost.idsAsked).toBe(900)
    expect(cost.rows).toBe(0)
    mustBeCheap(cost)
  })

  it('a circle of previous events is dropped', async () => {
    const room = await openRoom(version)
    const { label } = room.base.fixture
    const circle = Array.from({ length: 400 }, (_, n) =>
      rename(room, `${label}-circle-${n}`, room.base.fixture.references.member, {
        prev_events: [unknownReference(version, `${label}-circle-${(n + 1) % 400}`)],
      }),
    )
    const cost = await attackForItsCost(room, { missing: () => circle.slice(50, 100) }, [...circle, ...room.sayMany(3)])
    expect(new Set(cost.received.slice(0, 400).map(({ reason }) => reason))).toEqual(new Set(['it builds on itself']))
    expect(cost.received.slice(400).map(({ kind }) => kind)).toEqual(['accepted', 'accepted', 'accepted'])
    expect(cost.rows).toBe(3)
    mustBeCheap(cost)
  })
})

it('a large state that is told and given is fetched in large pieces', async () => {
  const room = await openRoom(roomVersion('12')!)
  const { levels, member } = room.base.fixture.references
  const entries = Array.from({ length: 10_000 }, (_, n) =>
    rename(room, '', member, {
      type: 'x.open',
      state_key: `${n}`,
      content: { text: 'x'.repeat(200) },
      auth_events: [levels, member],
    }),
  )
  const state = [...room.state.values(), ...entries.map(({ eventId }) => eventId)]
  const event = room.say({ prev: [unknownReference(room.version, 'before a large state')] })
  const cost = await attackForItsCost(room, { event: byId(entries), state: () => ({ state, authChain: [] }) }, [event])
  expect(cost.received[0]).toMatchObject({ kind: 'accepted' })
  expect(cost.questions.events).toBe(100)
  expect(cost.rows).toBe(10_001)
  mustBeCheap(cost, { heapMb: 48, ms: 30_000 })
}, 60_000)
