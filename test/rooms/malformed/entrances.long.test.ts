import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BuiltEvent } from '../../../src/core/event/build.ts'
import { referencedId } from '../../../src/core/event/format.ts'
import type { EventId } from '../../../src/core/ids.ts'
import type { JsonValue, ReadJson } from '../../../src/core/json.ts'
import { ROOM_VERSIONS } from '../../../src/core/room-version.ts'
import type { FederationQueries } from '../../../src/domain/rooms/receive/federation-queries.ts'
import type { Received } from '../../../src/domain/rooms/receive/received.ts'
import { isCitable } from './citable.ts'
import { CASES, casesByTurns, type Forgery, forge, parsed, readIn, unknownReference } from './forgery.ts'
import { inspect, inspectLoaded } from './inspection.ts'
import { startWatchedServer, type WatchedServer } from './server.ts'
import { BETA, jsonOf, WatchedRoom } from './watched-room.ts'

let server: WatchedServer
beforeAll(async () => {
  server = await startWatchedServer()
})
afterAll(() => server.close())

/** Brings a malformed event to the server in some way. */
type Entrance = (room: WatchedRoom, forgery: Forgery, index: number) => Promise<void>

async function receive(room: WatchedRoom, pdus: readonly ReadJson[]): Promise<readonly Received[]> {
  const received = await server.engine.receiver.receive(BETA, room.id, pdus)
  expect(received.length).toBe(pdus.length)
  return received
}

/** Has the forging server answer questions; it gives what is malformed whatever it is asked for. */
function answer(room: WatchedRoom, { json, companions }: Forgery, more: Partial<FederationQueries>): void {
  const forged = [...(json ? [json] : []), ...companions]
  const isOneOf = (each: ReadJson, ids: readonly EventId[]) =>
    ids.includes(readIn(room.version, each)?.eventId as EventId)
  server.answers.set(room.id, {
    missingEvents: async () => forged,
    events: async (_, __, ids) => [
      ...forged.filter((each) => isOneOf(each, ids)),
      ...ids.flatMap((id) => room.base.events.get(id) ?? []).map((event) => jsonOf(event)),
      ...forged.filter((each) => !isOneOf(each, ids)),
    ],
    ...more,
  })
}

async function standingOf(id: EventId): Promise<string> {
  const rows = await server.db.query<{ standing: string | null }>('SELECT standing FROM event WHERE event_id = $1', [
    id,
  ])
  return rows[0] === undefined ? 'dropped' : (rows[0].standing ?? 'accepted')
}

/** Its id, in versions 1 and 2, is that of another event. */
function isHonest(room: WatchedRoom, { eventId }: Forgery): boolean {
  return room.accepted.has(eventId) || room.base.events.has(eventId)
}

/** As a part of an auth chain or a told state it may be known, if it is right by what it cites. */
async function mustStandBesides(room: WatchedRoom, forgery: Forgery): Promise<string> {
  const standing = await standingOf(forgery.eventId)
  const { kind, name } = forgery.malformed
  const fits = isCitable(room, forgery) ? ['outlier', 'dropped'] : ['rejected', 'dropped']
  if (!isHonest(room, forgery) && !fits.includes(standing))
    throw new Error(`version ${room.version.id}: ${kind}: ${name} stands as ${standing}`)
  return standing
}

const tally = new Map<string, number>()
const count = (what: string) => tally.set(what, (tally.get(what) ?? 0) + 1)
const countOf = (start: string) =>
  [...tally].reduce((sum, [what, times]) => sum + (what.startsWith(start) ? times : 0), 0)

const entrances: Record<string, Entrance> = {
  async 'before an event that is valid'(room, forgery, index) {
    const event = room.say({ prev: [forgery.reference] })
    const isStateShown = index % 2 === 0
    answer(room, forgery, {
      stateIds: async (_, __, id) =>
        isStateShown && id === event.eventId ? { state: [...room.state.values()], authChain: [] } : undefined,
    })
    const [received] = await receive(room, [jsonOf(event)])
    if (!isHonest(room, forgery)) {
      const kind = await standingOf(forgery.eventId)
      room.mustBeExpected(forgery, { kind, eventId: forgery.eventId } as Received)
    }
    room.took(received!, event.reference, event.pdu)
    count(`built upon: ${received!.kind}`)
  },

  async 'as an auth event'(room, forgery, index) {
    answer(room, forgery, {})
    const whole = room.say().pdu.auth_events
    const key = forgery.read?.pdu.state_key === undefined ? undefined : room.underKeyOf(forgery.read.pdu)
    const others = whole.filter((reference) => index % 2 === 0 || referencedId(reference) !== key)
    const event = room.say({ auth: [...others, forgery.reference] })
    const [received] = await receive(room, [jsonOf(event)])
    const standing = await mustStandBesides(room, forgery)
    if (received!.kind === 'accepted' && !isHonest(room, forgery)) expect(standing).toBe('outlier')
    room.took(received!, event.reference, event.pdu)
    count(`cited: ${received!.kind}`)
  },

  async 'in the state told at a gap'(room, forgery, index) {
    const key = forgery.read && room.underKeyOf(forgery.read.pdu)
    const honest = [...room.state.values()].filter((id) => index % 3 === 0 || id !== key)
    const others = [...room.base.events.keys()]
    const [state, authChain] =
      index % 4 === 3 ? [honest, [...others, forgery.eventId]] : [[...honest, forgery.eventId], others]
    answer(room, forgery, { missingEvents: async () => [], stateIds: async () => ({ state, authChain }) })
    const event = room.say({ prev: [unknownReference(room.version, `gap-${room.version.id}-${index}`)] })
    const [received] = await receive(room, [jsonOf(event)])
    await mustStandBesides(room, forgery)
    room.took(received!, event.reference, event.pdu)
    if (received!.kind === 'accepted') await room.learn(server, forgery.eventId)
    count(`after a gap: ${received!.kind}`)
  },

  async 'in any place of a transaction, twice'(room, forgery, index) {
    const valid = room.sayMany(20)
    const items: { json: ReadJson; valid?: BuiltEvent }[] = valid.map((event) => ({
      json: jsonOf(event),
      valid: event,
    }))
    if (forgery.json) {
      items.splice(index % 21, 0, { json: forgery.json })
      items.splice((index * 7) % 22, 0, { json: forgery.json })
    }
    const json = items.map((item) => item.json)
    const received = await receive(room, json)
    items.forEach((item, at) => {
      const one = received[at]!
      if (item.valid) {
        expect(one).toMatchObject({ kind: 'accepted', eventId: item.valid.eventId })
        room.took(one, item.valid.reference, item.valid.pdu)
      } else room.mustBeExpected(forgery, one)
    })
    const again = await receive(room, json)
    items.forEach((item, at) => {
      if (!item.valid) room.mustBeExpected(forgery, again[at]!)
      else expect(again[at]!.kind).toBe('known')
    })
    count(forgery.json ? 'transactions' : 'transactions without it')
  },

  async 'in the text of a transaction'(room, forgery) {
    const read = parsed(`{"origin":"beta.test","origin_server_ts":1,"pdus":[${forgery.text}],"edus":[]}`)
    count(read ? 'texts' : 'texts that are no JSON')
    if (!read) return
    const { pdus } = read.value as { pdus: JsonValue[] }
    const received = await receive(
      room,
      pdus.map((value) => ({ value, offence: read.offence })),
    )
    for (const one of received) room.mustBeExpected(forgery, one)
  },
}

describe.each(Object.keys(entrances))('%s', (name) => {
  it.each(ROOM_VERSIONS)('a malformed event comes to nothing in version $id', async (version) => {
    const room = new WatchedRoom(version, `${Object.keys(entrances).indexOf(name)}-${version.id}`)
    await room.open(server)
    await new WatchedRoom(version, 'other', room.base.other).open(server)
    const forged: EventId[] = []
    for (const malformed of casesByTurns(version)) {
      const forgery = forge(malformed, room.fixture)
      await entrances[name]!(room, forgery, CASES.indexOf(malformed))
      server.answers.delete(room.id)
      await room.mend(server)
      forged.push(forgery.eventId)
    }
    await inspect(server, room, forged)
    await server.restart()
    await inspectLoaded(server, room)
  })
})

it('every malformed event came in every way', () => {
  for (const way of ['built upon', 'cited', 'after a gap', 'transaction', 'text'])
    expect(countOf(way), way).toBe(CASES.length)
  // The events around them are not refused for nothing.
  expect(tally.get('built upon: accepted')).toBeGreaterThan(CASES.length / 3)
  expect(tally.get('after a gap: accepted')).toBeGreaterThan(CASES.length / 3)
})
