import { afterAll, beforeAll, expect, it } from 'vitest'
import { type EventId, type RoomId, serverOf } from '../../src/core/ids.ts'
import type { RoomVersion } from '../../src/core/room-version.ts'
import { openScene, play } from './actors.ts'
import { reconcile } from './convergence.ts'
import { Dice } from './dice.ts'
import { CALM, ROUGH } from './network.ts'
import { type RoomView, viewRoom } from './room-view.ts'
import { parsed, Run } from './run.ts'
import { type SimulatedServer, startSimulatedServer } from './server.ts'
import { within } from './world.ts'

const FIRST_SEED = Number(process.env.SIM_SEED ?? 9_001)
const ROOMS = Number(process.env.SIM_ROOMS ?? 3)
/** Orders in which the events of one room arrive. */
const ORDERS = Number(process.env.SIM_ORDERS ?? 10)
const MS_PER_ORDER = 5_000
/** Everything that a server holds of rooms. */
const ROOM_TABLES =
  'room, event, event_gap, early_redaction, state_key, state_change, state_chain, state_checkpoint, room_member, highlight, list_ban'

let servers: SimulatedServer[]
let latecomer: SimulatedServer

beforeAll(async () => {
  servers = await Promise.all(['alpha.test', 'beta.test', 'gamma.test'].map(startSimulatedServer))
  latecomer = servers[2]!
})
afterAll(async () => {
  for (const server of servers) await server.close()
})

interface Past {
  readonly run: Run
  readonly roomId: RoomId
  readonly version: RoomVersion
  readonly home: SimulatedServer
  readonly view: RoomView
  /** The first join of a user of the latecomer's. */
  readonly join: EventId
}

/** A room with a past of many branches, which a server tells that has seen all of it. */
async function roomWithPast(from: number): Promise<Past> {
  for (let seed = from; ; seed++) {
    const run = new Run(servers, seed)
    const past = await within(run, async () => {
      const scene = await openScene(run)
      run.network.conditions = ROUGH
      await play(scene, 70)
      run.network.conditions = CALM
      const present = await reconcile(scene)
      const home = present.find((server) => server !== latecomer)
      const view = home && (await viewRoom(home.db, scene.roomId))
      const join = view && firstJoin(view)
      return join && present.length > 1 && { ...scene, home: home!, view: view!, join }
    })
    if (past && branchesIn(past.view) >= 10) return past
  }
}

function firstJoin(view: RoomView): EventId | undefined {
  const joins = [...view.events.values()].filter(
    ({ pdu, standing }) =>
      standing === null &&
      pdu.type === 'm.room.member' &&
      pdu.content.membership === 'join' &&
      serverOf(pdu.state_key!) === latecomer.name,
  )
  return joins.toSorted((a, b) => a.nid - b.nid)[0]?.id
}

/** Events that another one stands beside: both build on the same. */
function branchesIn(view: RoomView): number {
  const children = new Map<EventId, number>()
  for (const { prev } of view.events.values()) for (const id of prev) children.set(id, (children.get(id) ?? 0) + 1)
  return [...children.values()].filter((count) => count > 1).length
}

/**
 * What lies after an event and before the newest: what a server is sent from when it joined on. Events that came too late everywhere
 * are left out: were they the first to come, they would be accepted.
 */
function eventsAfter(view: RoomView, first: EventId): EventId[] {
  const before = new Set<EventId>()
  const open = [...view.extremities]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (before.has(id)) continue
    before.add(id)
    open.push(...(view.events.get(id)?.prev ?? []))
  }
  const after = new Set([first])
  for (const { id, prev } of [...view.events.values()].sort((a, b) => Number(a.pdu.depth) - Number(b.pdu.depth))) {
    if (prev.some((one) => after.has(one))) after.add(id)
  }
  after.delete(first)
  return [...after].filter((id) => before.has(id))
}

/** The room as the latecomer has it after its events came in one of the possible orders, in transactions of any size, some twice. */
async function arriveIn(order: number, { run, roomId, version, home, view, join }: Past): Promise<RoomView> {
  const dice = new Dice(order)
  const later = eventsAfter(view, join)
  expect(later.length).toBeGreaterThan(10)
  const textOf = (id: EventId) => parsed(JSON.stringify(view.events.get(id)!.pdu))
  await latecomer.db.query(`TRUNCATE ${ROOM_TABLES}`)
  await latecomer.restart()
  await within(run, async () => {
    const { processJoin, receiver } = latecomer.engine
    const answer = (await home.engine.resident.joinAnswer(roomId, join))!
    const past = { state: answer.state.map(parsed), authChain: answer.authChain.map(parsed) }
    const outcome = await processJoin(home.name, version, roomId, textOf(join), past)
    expect(outcome).toMatchObject({ kind: 'accepted' })
    const rest = dice.shuffled([...later, ...later.filter(() => dice.chance(0.1))])
    while (rest.length > 0) {
      const part = rest.splice(0, dice.between(1, 12))
      await receiver.receive(home.name, roomId, part.map(textOf))
    }
  })
  return (await viewRoom(latecomer.db, roomId))!
}

it(
  'a room ends in one state, in whatever order its events arrive',
  async () => {
    for (let seed = FIRST_SEED, room = 0; room < ROOMS; room++, seed++) {
      const past = await roomWithPast(seed)
      seed = past.run.seed
      for (let order = 1; order <= ORDERS; order++) {
        const reached = await arriveIn(order, past)
        const which = `SIM_SEED=${seed}, order ${order}`
        expect(reached.extremities.toSorted(), which).toEqual(past.view.extremities.toSorted())
        expect(sorted(reached.state), which).toEqual(sorted(past.view.state))
      }
    }
  },
  60_000 + ROOMS * ORDERS * MS_PER_ORDER,
)

function sorted(state: ReadonlyMap<string, EventId>): [string, EventId][] {
  return [...state].sort(([a], [b]) => (a < b ? -1 : 1))
}
