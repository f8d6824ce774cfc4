import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EventId, RoomId } from '../../src/core/ids.ts'
import type { RoomVersion } from '../../src/core/room-version.ts'
import { openScene, play } from './actors.ts'
import { reconcile, verify } from './convergence.ts'
import { ROUGH } from './network.ts'
import { viewRoom } from './room-view.ts'
import { Run } from './run.ts'
import { type SimulatedServer, startSimulatedServer } from './server.ts'
import { within } from './world.ts'

/** One seed alone, or as many as are wanted, from the first or another on. */
const ONLY = process.env.SIM_SEED
const FROM = Number(ONLY ?? process.env.SIM_FROM ?? 1)
const SEEDS = upTo(ONLY === undefined ? Number(process.env.SIM_SEEDS ?? 30) : 1).map((count) => FROM + count - 1)
/** A directory for what happened in each run. */
const TRACES = process.env.SIM_TRACES
const AT_ONCE = 8
const MS_PER_SEED = 10_000

let servers: SimulatedServer[]

beforeAll(async () => {
  servers = await Promise.all(['alpha.test', 'beta.test', 'gamma.test'].map(startSimulatedServer))
})
afterAll(async () => {
  for (const server of servers) await server.close()
})

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1)
}

/** Rooms are made one after the other, in the order of seeds: no run moves another's clock. */
let turn: Promise<unknown> = Promise.resolve()

function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const result = turn.then(work)
  turn = result.catch(() => undefined)
  return result
}

interface Ending {
  readonly run: Run
  readonly version: RoomVersion
  readonly roomId: RoomId
  readonly present: readonly SimulatedServer[]
}

async function runSeed(seed: number): Promise<Ending> {
  const run = new Run(servers, seed)
  try {
    return await within(run, async () => {
      const scene = await inTurn(() => openScene(run))
      run.network.conditions = ROUGH
      await play(scene, run.dice.between(40, 80))
      const present = await reconcile(scene)
      await verify(scene, present)
      return { run, version: scene.version, roomId: scene.roomId, present }
    })
  } catch (error) {
    const command = `SIM_SEED=${seed} npx vitest run test/federation/convergence.long.test.ts`
    throw new Error(`seed ${seed} (${command}): ${(error as Error).stack}`, { cause: error })
  } finally {
    if (TRACES !== undefined) await writeFile(join(TRACES, `seed-${seed}`), run.trace.join('\n'))
  }
}

/** Several at a time, all to their end. */
async function runAll(seeds: readonly number[]): Promise<PromiseSettledResult<Ending>[]> {
  const results: PromiseSettledResult<Ending>[] = []
  const left = [...seeds]
  async function work(): Promise<void> {
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
      results.push(...(await Promise.allSettled([runSeed(seed)])))
    }
  }
  await Promise.all(upTo(AT_ONCE).map(work))
  return results
}

describe('servers over a network that delays, loses, doubles, reorders and parts', () => {
  let endings: Ending[]

  it(
    'end with the same events and the same state',
    async () => {
      const results = await runAll(SEEDS)
      const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.message] : []))
      expect(failures.join('\n\n')).toBe('')
      endings = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
      const seen = await summary(endings)
      console.info(JSON.stringify(seen))
      // A network on which nothing happens would come together as well.
      if (SEEDS.length >= 20) {
        const together = endings.filter(({ present }) => present.length === servers.length)
        expect(together.length).toBeGreaterThan(SEEDS.length / 2)
        expect(new Set(together.map(({ version }) => version.id)).size).toBeGreaterThan(10)
        expect(Math.min(...Object.values(seen))).toBeGreaterThan(0)
      }
    },
    SEEDS.length * MS_PER_SEED + 30_000,
  )

  it(
    'have it all in their databases',
    async () => {
      const before = await tellAll(endings)
      for (const server of servers) await server.restart()
      expect(await tellAll(endings)).toEqual(before)
    },
    SEEDS.length * MS_PER_SEED + 30_000,
  )
})

/** What happened in all rooms, by what the servers hold of them in the end. */
async function summary(endings: readonly Ending[]) {
  const total = { rooms: 0, allThreePresent: 0, events: 0, forks: 0, merges: 0, softFailed: 0, redacted: 0 }
  const asked = { missingEvents: 0, stateIds: 0, events: 0 }
  for (const { run, roomId, present } of endings) {
    total.rooms++
    if (present.length === servers.length) total.allThreePresent++
    for (const { kind } of run.questions) asked[kind]++
    for (const { db } of present) {
      const events = [...(await viewRoom(db, roomId))!.events.values()].filter(({ standing }) => standing !== 'outlier')
      const prev = events.flatMap((event) => event.prev)
      total.events += events.length
      total.forks += prev.length - new Set(prev).size
      total.merges += events.filter((event) => event.prev.length > 1).length
      total.softFailed += events.filter(({ standing }) => standing === 'soft-failed').length
      total.redacted += events.filter(({ redactedBy }) => redactedBy !== null).length
    }
  }
  return { ...total, missingAsked: asked.missingEvents, statesAsked: asked.stateIds, eventsAsked: asked.events }
}

/** What users are told of each room's state by each server. */
async function tellAll(endings: readonly Ending[]): Promise<string[][]> {
  const shown: string[][] = []
  for (const { roomId, present } of endings) for (const server of present) shown.push(await tell(server, roomId))
  return shown
}

async function tell(server: SimulatedServer, roomId: RoomId): Promise<string[]> {
  const view = (await viewRoom(server.db, roomId))!
  const [user] = [...view.members].find(([id, text]) => text.startsWith('join') && id.endsWith(`:${server.name}`))!
  const json = await server.engine.services.roomReader.state(await server.as(user), roomId)
  const events = JSON.parse(json.toBuffer().toString()) as { event_id: EventId; type: string; state_key: string }[]
  const shown = events.map((event) => `${event.type} ${event.state_key}: ${event.event_id}`).sort()
  expect(shown).toEqual([...view.state].map(([key, id]) => `${key}: ${id}`).sort())
  return shown
}
