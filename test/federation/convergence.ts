import { expect } from 'vitest'
import { ProtocolError } from '../../src/core/errors.ts'
import { membershipOf } from '../../src/core/event/content.ts'
import type { EventId, RoomId, ServerName, UserId } from '../../src/core/ids.ts'
import { serverOf } from '../../src/core/ids.ts'
import type { Scene } from './actors.ts'
import { type HeldEvent, memberships, type RoomView, viewRoom } from './room-view.ts'
import type { Run } from './run.ts'
import type { SimulatedServer } from './server.ts'

const MAX_ROUNDS = 12

/**
 * Lets the servers of a room talk until they have told each other everything: in turn, each server whose users are in the room sends a
 * message and repeats the newest events it knows. Over when all of these build on the same events.
 */
export async function reconcile({ run, roomId }: Pick<Scene, 'run' | 'roomId'>): Promise<readonly SimulatedServer[]> {
  await run.network.settle()
  for (let round = 0; round < MAX_ROUNDS; round++) {
    for (const server of run.servers.values()) await speak(run, roomId, server, round)
    const present = await presentServers(run, roomId)
    const tips = await Promise.all(present.map(async ({ db }) => (await viewRoom(db, roomId))!.extremities.toSorted()))
    if (tips.every((ids) => ids.join() === tips[0]!.join())) return present
  }
  throw new Error(`the servers did not come together in ${MAX_ROUNDS} rounds`)
}

/** The servers that take themselves to be in the room. */
async function presentServers(run: Run, roomId: RoomId): Promise<SimulatedServer[]> {
  const found: SimulatedServer[] = []
  for (const server of run.servers.values()) {
    if ((await run.serversIn(server, roomId)).has(server.name)) found.push(server)
  }
  return found
}

async function speak(run: Run, roomId: RoomId, server: SimulatedServer, round: number): Promise<void> {
  const members = await memberships(server.db, roomId)
  const own = [...members].find(([user, membership]) => membership === 'join' && serverOf(user) === server.name)
  if (!own) return
  await sayIfAllowed(run, own[0], roomId, round)
  const { extremities } = (await viewRoom(server.db, roomId))!
  const newest = await server.engine.resident.events(roomId, extremities)
  for (const other of await presentServers(run, roomId)) run.post(server, other.name, roomId, newest)
  await run.network.settle()
}

async function sayIfAllowed(run: Run, user: UserId, roomId: RoomId, round: number): Promise<void> {
  try {
    await run.say(user, roomId, `round ${round}`)
  } catch (error) {
    if (!(error instanceof ProtocolError) || error.status >= 500) throw error
  }
}

/**
 * What must hold once servers have told each other everything. Of the servers that have users in the room:
 *
 * 1. All build on the same events, and hold the same state and memberships, by event id.
 * 2. Each holds, with its place in the room, every event that lies before these; a server that came later, every one that does not
 *    lie before its join. What an event makes of the room is a function of the events before it, so this is what has to be the same.
 * 3. None of these is rejected anywhere: what one server allows its users, all others allow. Soft-failed is a matter of when an event
 *    came, and may differ: then somebody who took it for accepted built on it, or it is before nothing and decides nothing.
 * 4. The state before each of these events is the same wherever it is held, by whatever way it came.
 * 5. All that a server accepted lies before the newest events: nothing is accepted here and unheard of there.
 */
export async function verify(
  { run, roomId }: Pick<Scene, 'run' | 'roomId'>,
  present: readonly SimulatedServer[],
): Promise<void> {
  const views = new Map<ServerName, RoomView>()
  for (const server of present) views.set(server.name, (await viewRoom(server.db, roomId))!)
  const [first] = views.values()
  if (!first) return
  const dag = allPlaced(views)
  const common = ancestorsOf(first.extremities, dag)
  for (const [name, view] of views) {
    expect(view.extremities.toSorted(), `newest events of ${name}`).toEqual(first.extremities.toSorted())
    expect(entries(view.state), `state of ${name}`).toEqual(entries(first.state))
    verifyMembers(name, view)
    const arrival = run.arrivals.get(`${name} ${roomId}`)
    const earlier = arrival === undefined ? new Set<EventId>() : ancestorsOf([arrival], dag)
    const lacking = [...common].filter((id) => !earlier.has(id) && !isPlaced(view.events.get(id)))
    expect(lacking, `events that ${name} lacks`).toEqual([])
    for (const event of view.events.values()) verifyStanding(name, event, common)
  }
  await verifyStates(run, views, common)
}

function isPlaced(event: HeldEvent | undefined): boolean {
  return event !== undefined && event.standing !== 'outlier'
}

function verifyStanding(name: string, event: HeldEvent, common: ReadonlySet<EventId>): void {
  const what = `${event.type} ${event.id} on ${name}`
  expect(event.standing === 'rejected' ? `${what}: ${event.reason}` : 'fine').toBe('fine')
  expect(event.isInTimeline, `${what} is in the timeline`).toBe(event.standing === null)
  if (event.standing === null) expect(common, `${what} is known to all`).toContain(event.id)
}

/** Every event with a place on some server, with those it builds on. */
function allPlaced(views: ReadonlyMap<ServerName, RoomView>): Map<EventId, readonly EventId[]> {
  const dag = new Map<EventId, readonly EventId[]>()
  for (const view of views.values()) {
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
