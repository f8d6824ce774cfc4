import { roomVersion } from '../../src/core/room-version.ts'
import { resolveStates } from '../../src/core/state/resolve.ts'
import { latenciesOf, type Measurement, measurement, now } from '../measurement.ts'
import { type Fork, forkedRoom } from '../micro/large-room.ts'
import type { BenchOptions } from '../options.ts'

export const BENCHMARK = 'resolution'

const EVENTS = [1_000, 10_000, 100_000]
const DIFFERING = 20
const ROUNDS = 200
const WARM_UP = 50
/** One room version for each algorithm. */
const ALGORITHMS = [
  ['v1', '1'],
  ['v2', '10'],
  ['v2.1', '12'],
] as const

/** State resolution alone, in this process, with every event in memory; that of others cannot be measured from outside. */
export async function measureResolution(options: BenchOptions): Promise<Measurement[]> {
  if (options.url !== undefined) return []
  const rows: Measurement[] = []
  for (const events of EVENTS) {
    for (const [algorithm, version] of ALGORITHMS) {
      const fork = forkedRoom(roomVersion(version)!, events, DIFFERING)
      const { size } = fork.states[0]
      rows.push(await timed(`${algorithm}, ${counted(size)} entries, ${DIFFERING} differ`, () => resolve(fork)))
      if (algorithm === 'v2')
        rows.push(await timed(`auth difference, ${counted(events)} events`, () => differ(fork), noteOf(fork)))
    }
  }
  return rows
}

function resolve({ room, states }: Fork) {
  return resolveStates(room.version, states, room)
}

function differ({ room, states }: Fork) {
  return room.graph.difference(states)
}

function noteOf({ room }: Fork): string {
  return `the graph takes ${Math.round(room.graph.bytes / room.graph.size)} bytes per event`
}

const counted = (count: number) => count.toLocaleString('en')

async function timed(variant: string, act: () => unknown, note?: string): Promise<Measurement> {
  const times: number[] = []
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    const begun = now()
    await act()
    times.push(now() - begun)
  }
  return measurement({ benchmark: BENCHMARK, variant, ...latenciesOf(times.slice(WARM_UP)), note })
}
