import { expect } from 'vitest'
import { ProtocolError } from '../../src/core/errors.ts'
import { membershipOf, redactsOf } from '../../src/core/event/content.ts'
import { redact } from '../../src/core/event/redact.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../src/core/ids.ts'
import { serverOf } from '../../src/core/ids.ts'
import { roomVersion } from '../../src/core/room-version.ts'
import type { Scene } from './actors.ts'
import { type HeldEvent, memberships, type RoomView, viewRoom } from './room-view.ts'
import type { Run } from './run.ts'
import type { SimulatedServer } from './server.ts'
import { honestAnswers } from './world.ts'

const MAX_ROUNDS = 12

/**
 * Lets the servers of a room talk until they have told each other everything: in turn, each server whose users are in the room has one
 * of them send a message, repeats the newest events it knows, and asks for those that its own refer to and that never came. Over when
 * all of these build on the same events.
 */
export async function reconcile({ run, roomId }: Pick<Scene, 'run' | 'roomId'>): Promise<readonly SimulatedServer[]> {
  await run.network.settle()
  for (let round = 0; round < MAX_ROUNDS; round++) {
    for (const server of run.servers.values()) {
      await fillGaps(run, roomId, server)
      await speak(run, roomId, server, round)
    }
    const present = await presentServers(run, roomId)
    const tips = await Promise.all(present.map(async ({ db }) => (await viewRoom(db, roomId))!.extremities.toSorted()))
    const isQuiet = tips.every((ids) => ids.join() === tips[0]!.join())
    if (isQuiet && !(await anyFillsGaps(run, roomId, present))) return present
  }
  throw new Error(`the servers did not come together in ${MAX_ROUNDS} rounds`)
}

/**
 * The servers that take part in the room: each has a user of whom all of them hold that they are in it. Where branches with and
 * without a user's membership meet, a server may be left alone with its opinion that this user is in; what it says is soft-failed
 * everywhere else, and it takes part no more.
 */
async function presentServers(run: Run, roomId: RoomId): Promise<SimulatedServer[]> {
  let present = await serversByOwnView(run, roomId)
  const joined = new Map<SimulatedServer, Set<UserId>>()
  for (const server of present) {
    const members = [...(await memberships(server.db, roomId))].filter(([, membership]) => membership === 'join')
    joined.set(server, new Set(members.map(([user]) => user)))
  }
  for (let left = -1; left !== present.length; ) {
    left = present.length
    const others = present
    present = others.filter(({ name }) =>
      [...joined.values()].some((users) =>
        [...users].some((user) => serverOf(user) === name && others.every((other) => joined.get(other)!.has(user))),
      ),
    )
  }
  return present
}

async function serversByOwnView(run: Run, roomId: RoomId): Promise<SimulatedServer[]> {
  const found: SimulatedServer[] = []
  for (const server of run.servers.values()) {
    if ((await run.serversIn(server, roomId)).has(server.name)) found.push(server)
  }
  return found
}

async function speak(run: Run, roomId: RoomId, server: SimulatedServer, round: number): Promise<void> {
  const members = await memberships(server.db, roomId)
  const own = [...members].filter(([user, membership]) => membership === 'join' && serverOf(user) === server.name)
  if (own.length === 0) return
  await sayIfAllowed(run, own[round % own.length]![0], roomId, round)
  const { extremities } = (await viewRoom(server.db, roomId))!
  const newest = await honestAnswers(server.engine.resident).events(roomId, extremities)
  for (const other of await serversByOwnView(run, roomId)) run.post(server, other.name, roomId, newest)
  await run.network.settle()
}

/**
 * Has a server told of events that lie before its own and that the servers it asked did not have. A server that came later is not
 * told of what lies before its join. False when nothing came of it.
 */
async function fillGaps(run: Run, roomId: RoomId, server: SimulatedServer): Promise<boolean> {
  const asked = new Set<EventId>()
  for (;;) {
    const view = await viewRoom(server.db, roomId)
    const missing = view ? missingIn(run, server.name, roomId, view).filter((id) => !asked.has(id)) : []
    if (missing.length === 0) return [...asked].some((id) => isPlaced(view?.events.get(id)))
    for (const id of missing) {
      asked.add(id)
      for (const other of run.servers.values()) {
        const texts = other === server ? [] : await honestAnswers(other.engine.resident).events(roomId, [id])
        if (texts.length > 0) await run.receive(server, other.name, roomId, texts)
      }
    }
  }
}

async function anyFillsGaps(run: Run, roomId: RoomId, servers: readonly SimulatedServer[]): Promise<boolean> {
  let any = false
  for (const server of servers) any = (await fillGaps(run, roomId, server)) || any
  return any
}

function missingIn(run: Run, name: ServerName, roomId: RoomId, view: RoomView): EventId[] {
  const arrival = run.arrivals.get(`${name} ${roomId}`)
  const earlier = arrival === undefined ? new Set() : ancestorsOf([arrival], allPlaced([view]))
  const placed = [...view.events.values()].filter((event) => isPlaced(event) && !earlier.has(event.id))
  return [...new Set(placed.flatMap(({ prev }) => prev))].filter((id) => !isPlaced(view.events.get(id)))
}

async function sayIfAllowed(run: Run, user: UserId, roomId: RoomId, round: number): Promise<void> {
  try {
    await run.say(user, roomId, `round ${round}`)
  } catch (error) {
    if (!(error instanceof ProtocolError) || error.status >= 500) throw error
  }
}

/**
 * What must hold once servers have told each other everything. Of the servers that take part in the room:
 *
 * 1. All build on the same events, and hold the same state and memberships, by event id.
 * 2. Each holds, with its place in the room, every event that lies before these; a server that came later, every one that does not
 *    lie before its join. What an event makes of the room is a function of the events before it, so this is what has to be the same.
 * 3. None of these is rejected anywhere: what one server allows its users, all others allow. Soft-failed is a matter of when an event
 *    came, and may differ: then somebody who took it for accepted built on it, or it is before nothing and decides nothing.
 * 4. The state before each of these events is the same wherever it is held, by whatever way it came.
 * 5. All that a server accepted lies before the newest events: nothing is accepted here and unheard of there. A server that came back
 *    after its last user had left builds on its join alone; what it had not told anybody by then is no part of the room.
 */
export async function verify(
  { run, roomId }: Pick<Scene, 'run' | 'roomId'>,
  present: readonly SimulatedServer[],
): Promise<void> {
  const views = new Map<ServerName, RoomView>()
  for (const server of present) views.set(server.name, (await viewRoom(server.db, roomId))!)
  const [first] = views.values()
  if (!first) return
  const dag = allPlaced(views.values())
  const common = ancestorsOf(first.extremities, dag)
  for (const [name, view] of views) {
    expect(view.extremities.toSorted(), `newest events of ${name}`).toEqual(first.extremities.toSorted())
    expect(entries(view.state), `state of ${name}`).toEqual(entries(first.state))
    verifyMembers(name, view)
    const arrival = run.arrivals.get(`${name} ${roomId}`)
    const earlier = arrival === undefined ? new Set<EventId>() : ancestorsOf([arrival], dag)
    const lacking = [...common]
      .filter((id) => !earlier.has(id) && !isPlaced(view.events.get(id)))
      .map((id) => describe(id, views))
    if (lacking.length > 0) throw new Error(`${name} lacks ${lacking.join('; ')}`)
    const since = arrival === undefined ? 0 : view.events.get(arrival)!.nid
    for (const event of view.events.values()) {
      verifyStanding(name, event, common, since)
      verifyRedaction(name, event, view)
    }
  }
  await verifyStates(run, views, common)
}

function describe(id: EventId, views: ReadonlyMap<ServerName, RoomView>): string {
  const held = [...views].flatMap(([name, { events }]) => {
    const event = events.get(id)
    return event ? [`${event.type} by ${event.sender} ${event.standing} on ${name}`] : []
  })
  return `${id}: ${held.join(', ')}`
}

function isPlaced(event: HeldEvent | undefined): boolean {
  return event !== undefined && event.standing !== 'outlier'
}

function verifyStanding(name: string, event: HeldEvent, common: ReadonlySet<EventId>, since: number): void {
  const what = `${event.type} ${event.id} on ${name}`
  if (event.standing === 'rejected') throw new Error(`${what} was rejected: ${event.reason}`)
  // One that redacts nothing, or nothing yet, is shown to nobody.
  if (event.type !== 'm.room.redaction' || event.standing !== null)
    expect(event.isInTimeline, `${what} is in the timeline`).toBe(event.standing === null)
  if (event.standing === null && event.nid >= since) expect(common, `${what} is known to all`).toContain(event.id)
}

/** What was redacted is gone, and nothing says that it was redacted but a redaction. */
function verifyRedaction(name: string, event: HeldEvent, view: RoomView): void {
  if (event.redactedBy === null) return
  const by = [...view.events.values()].find(({ nid }) => nid === event.redactedBy)
  const version = roomVersion(view.version)!
  // One that was redacted itself may not say any more what it was for.
  const target = by?.redactedBy === null ? redactsOf(version, by.pdu) : event.id
  expect(by && [by.type, target], `what redacted ${event.id} on ${name}`).toEqual(['m.room.redaction', event.id])
  expect(event.pdu, `${event.id} on ${name}, which was redacted`).toEqual(redact(version, event.pdu))
}

/** Every event with a place on some server, with those it builds on. */
function allPlaced(views: Iterable<RoomView>): Map<EventId, readonly EventId[]> {
  const dag = new Map<EventId, readonly EventId[]>()
  for (const view of views) {
    for (const event of view.events.values()) if (isPlaced(event)) dag.set(event.id, event.prev)
  }
  return dag
}

/** The events and all before them that somebody has. */
function ancestorsOf(ids: readonly EventId[], dag: ReadonlyMap<EventId, readonly EventId[]>): Set<EventId> {
  const found = new Set<EventId>()
  const open = [...ids]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const prev = dag.get(id)
    if (prev === undefined || found.has(id)) continue
    found.add(id)
    open.push(...prev)
  }
  return found
}

function entries(map: ReadonlyMap<string, string>): string[] {
  return [...map].map(([key, value]) => `${key}: ${value}`).sort()
}

/** The table of members says what the state says. Somebody whose membership was taken back altogether has left. */
function verifyMembers(name: string, view: RoomView): void {
  const stated = new Map<string, string>()
  for (const [key, id] of view.state) {
    if (key.startsWith('m.room.member ')) {
      stated.set(key.slice('m.room.member '.length), `${membershipOf(view.events.get(id)!.pdu)} ${id}`)
    }
  }
  for (const [user, text] of view.members) {
    if (!stated.has(user)) expect(text, `${user} on ${name}, who is in no state`).toMatch(/^leave /)
    else expect(text, `${user} on ${name}`).toBe(stated.get(user))
  }
  for (const user of stated.keys()) expect([...view.members.keys()], `members on ${name}`).toContain(user)
}

/** Events whose states are compared in each room. */
const STATES_COMPARED = 25

async function verifyStates(
  run: Run,
  views: ReadonlyMap<ServerName, RoomView>,
  common: ReadonlySet<EventId>,
): Promise<void> {
  for (const id of run.dice.shuffled([...common]).slice(0, STATES_COMPARED)) {
    let expected: string[] | undefined
    for (const [name, view] of views) {
      const event = view.events.get(id)
      if (event === undefined || !isPlaced(event)) continue
      const state = entries(await view.stateBefore(event))
      expected ??= state
      expect(state, `state before ${event.type} ${id} on ${name}`).toEqual(expected)
    }
  }
}
