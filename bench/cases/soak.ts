import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/support/free-port.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { openTarget, type Target } from '../target.ts'
import { gatherCrowd, type SoakCrowd } from './soak-people.ts'

export const BENCHMARK = 'soak'
/** What the project promises: light load for half an hour, and memory that stays as it is. */
const OPERATIONS_PER_SECOND = Number(process.env.SOAK_RATE ?? 40)
const ROOMS = Number(process.env.SOAK_ROOMS ?? 2_000)
const SAMPLES = 30
/** As much of a run as counts as warming up, and five minutes at most. */
const WARM_UP_SHARE = 1 / 3
const WARM_UP_MS = 5 * 60_000
const AT_ONCE = 32
const MEGABYTE = 1024 * 1024

interface Sample {
  readonly atMs: number
  readonly operations: number
  readonly residentMb: number
  readonly liveMb: number
}

/**
 * Light load of many kinds over many rooms, and the memory of the server over time: resident before, live after a forced collection.
 * `SOAK_RATE=0` goes as fast as it can: growth for each operation shows sooner.
 */
export async function measureSoak(options: BenchOptions): Promise<Measurement[]> {
  if (options.url !== undefined) throw new Error('soak looks into the memory of a server of ours: leave out --url')
  const gauge = fileURLToPath(new URL('../drivers/gauge.js', import.meta.url))
  const metricsPort = await freePort()
  const target = await openTarget(options, {
    env: { HEARTH__METRICS__PORT: String(metricsPort) },
    nodeArgs: ['--expose-gc', `--import=${gauge}`],
  })
  try {
    const resting = await sample(target, 0, 0)
    console.log(`at rest: ${describe(resting)}`)
    const crowd = await gatherCrowd(target, ROOMS)
    const samples = await soak(target, crowd, options.minutes * 60_000, metricsPort)
    await crowd.close()
    return [summary(target, samples, options)]
  } finally {
    await target.close()
  }
}

async function soak(target: Target, crowd: SoakCrowd, lengthMs: number, metricsPort: number): Promise<Sample[]> {
  const load = startLoad(crowd)
  const begun = performance.now()
  const samples: Sample[] = []
  const every = lengthMs / SAMPLES
  for (let index = 0; index <= SAMPLES; index += 1) {
    await pause(Math.max(0, begun + index * every - performance.now()))
    const taken = await sample(target, performance.now() - begun, load.operations())
    samples.push(taken)
    console.log(`${describe(taken)}, accounted ${await accounted(metricsPort)}, ${load.errors()} failed`)
  }
  await load.stop()
  return samples
}

/** So many operations a second, whatever they take, as long as not too many are under way. */
function startLoad(crowd: SoakCrowd) {
  let operations = 0
  let errors = 0
  let underWay = 0
  let isStopped = false
  const act = async (): Promise<void> => {
    underWay += 1
    await crowd.act().catch((error: Error) => {
      errors += 1
      if (errors <= 3) console.log(error.message)
    })
    underWay -= 1
    operations += 1
  }
  const loop = async (): Promise<void> => {
    const begun = performance.now()
    for (let number = 0; !isStopped; number += 1) {
      if (OPERATIONS_PER_SECOND > 0) {
        await pause(Math.max(0, begun + (number * 1_000) / OPERATIONS_PER_SECOND - performance.now()))
      }
      while (underWay >= AT_ONCE) await pause(5)
      void act()
    }
    while (underWay > 0) await pause(5)
  }
  const running = loop()
  return {
    operations: () => operations,
    errors: () => errors,
    stop() {
      isStopped = true
      return running
    },
  }
}

async function sample(target: Target, atMs: number, operations: number): Promise<Sample> {
  const { server } = target.usage()
  const liveMb = (await live(target)) / MEGABYTE
  return { atMs, operations, residentMb: server?.residentMb ?? Number.NaN, liveMb }
}

/** What is left after a forced collection: the server says it where its log goes. */
async function live(target: Target): Promise<number> {
  const own = target.own!
  const last = () => [...own.output().matchAll(/^live (\d+) (\d+)$/gm)].at(-1)
  const before = last()?.[1]
  process.kill(own.pid(), 'SIGUSR2')
  for (;;) {
    const said = last()
    if (said && said[1] !== before) return Number(said[2])
    await pause(20)
  }
}

async function accounted(port: number): Promise<string> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const parts = [...text.matchAll(/^hearth_room_memory_bytes\{kind="(\w+)"\} (\d+)/gm)]
  return parts.map(([, kind, bytes]) => `${kind} ${(Number(bytes) / MEGABYTE).toFixed(1)}`).join(' ')
}

function describe({ atMs, operations, residentMb, liveMb }: Sample): string {
  const seconds = (atMs / 1_000).toFixed(0).padStart(5)
  return `${seconds} s: ${operations} operations, ${residentMb.toFixed(0)} MB resident, ${liveMb.toFixed(1)} MB live`
}

function summary(target: Target, samples: readonly Sample[], { minutes }: BenchOptions): Measurement {
  const warmUpMs = Math.min(WARM_UP_MS, minutes * 60_000 * WARM_UP_SHARE)
  const settled = samples.filter(({ atMs }) => atMs >= warmUpMs)
  const perMs = slope(settled.map(({ atMs, liveMb }) => [atMs, liveMb]))
  const perOperation = slope(settled.map(({ operations, liveMb }) => [operations, liveMb]))
  const first = samples[0]!
  const last = samples.at(-1)!
  const figures = [
    `${last.residentMb.toFixed(0)} MB resident, ${last.liveMb.toFixed(1)} MB live at the end`,
    `live ${(perMs * 600_000).toFixed(2)} MB per 10 minutes and ${(perOperation * MEGABYTE).toFixed(0)} bytes per operation`,
    `after ${(warmUpMs / 60_000).toFixed(1)} minutes`,
  ]
  return measurement({
    benchmark: BENCHMARK,
    variant: `${ROOMS} rooms, ${minutes} minutes`,
    perSecond: last.operations / ((last.atMs - first.atMs) / 1_000),
    serverPeakMb: target.usage().server?.peakMb,
    postgresMb: target.usage().postgres?.proportionalMb,
    note: figures.join('; '),
  })
}

/** Of the straight line that lies nearest to the points. */
function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (place: 0 | 1) => points.reduce((sum, point) => sum + point[place], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const over = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0)
  return over / points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0)
}
