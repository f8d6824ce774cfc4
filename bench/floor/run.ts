import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import * as fanOut from '../cases/fan-out.ts'
import * as initialSync from '../cases/initial-sync.ts'
import * as noopSync from '../cases/noop-sync.ts'
import * as send from '../cases/send.ts'
import type { FanOutResult } from '../drivers/fan-out.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { usageOfProcess } from '../processes.ts'
import type { WrkRun } from '../wrk.ts'

/** The floor programs, under the same load as the server: what this machine could do if a server did nothing else. */
export const FLOORS: Readonly<Record<string, (options: BenchOptions) => Promise<Measurement[]>>> = {
  [send.BENCHMARK]: (options) => served('proto', (floor) => sendFloor(floor, options)),
  [fanOut.BENCHMARK]: (options) => served('fan', (floor) => fanOutFloor(floor, options)),
  [initialSync.BENCHMARK]: (options) => served('fan', (floor) => initialSyncFloor(floor, options)),
  [noopSync.BENCHMARK]: (options) => served('fan', (floor) => noopSyncFloor(floor, options)),
  pipe: () => answered('pipe', readFloor),
  trie: () => answered('trie', stateFloor),
}

/** A floor program that runs. */
interface Floor {
  readonly url: string
  /** CPU time of the program for each operation, while `work` drives it; it gives how many operations there were. */
  cpuMs(work: () => Promise<number>): Promise<number>
}

async function sendFloor({ url }: Floor, { seconds }: BenchOptions): Promise<Measurement[]> {
  const lines = (variant: send.Variant) =>
    Array.from({ length: variant.senders }, (_, index) => `token${index} !room${variant.isOneRoom ? 0 : index % 10}`)
  await send.drive(url, lines(send.VARIANTS[2]!), 3)
  const measured: Measurement[] = []
  for (const variant of send.VARIANTS) {
    measured.push(measurement(send.figuresOf(variant, await send.drive(url, lines(variant), seconds))))
  }
  return measured
}

async function fanOutFloor({ url, cpuMs }: Floor, options: BenchOptions): Promise<Measurement[]> {
  const measured: Measurement[] = []
  for (const members of options.members) {
    const listeners = Array.from({ length: members }, (_, index) => ({ token: `token${index}`, since: 's0' }))
    const task = { room: '!room', sender: 'token', listeners, sustainedSeconds: options.seconds }
    let result: FanOutResult | undefined
    const serverCpuMs = await cpuMs(async () => {
      result = await fanOut.driveFanOut(url, task)
      return fanOut.deliveriesOf(members, result)
    })
    measured.push(...fanOut.figuresOf(members, result!).map((figures) => ({ ...figures, serverCpuMs })))
  }
  return measured
}

async function initialSyncFloor({ url }: Floor, { rooms, seconds }: BenchOptions): Promise<Measurement[]> {
  const sync = () => initialSync.timedSync(url, { token: 'token' }, {}, { rooms: String(rooms) })
  const { BENCHMARK: benchmark, FEW } = initialSync
  const one = await initialSync.hotRounds(seconds, async () => (await sync()).milliseconds)
  const few = await initialSync.hotRounds(seconds, () => initialSync.timedTogether(Array.from({ length: FEW }, sync)))
  return [
    measurement({ benchmark, variant: `${rooms} rooms, lazy members, hot`, ...one }),
    measurement({ benchmark, variant: `${rooms} rooms, all members, hot`, ...one }),
    measurement({ benchmark, variant: `${rooms} rooms, lazy members, hot, ${FEW} at once`, ...few }),
  ]
}

async function noopSyncFloor({ url, cpuMs }: Floor, { seconds }: BenchOptions): Promise<Measurement[]> {
  const clients = [noopSync.noopLine('token', 's0')]
  await noopSync.driveNoopSync(url, clients, 2)
  let run: WrkRun | undefined
  const serverCpuMs = await cpuMs(async () => {
    run = await noopSync.driveNoopSync(url, clients, seconds)
    return run.requests
  })
  return [measurement({ ...noopSync.figuresOf(run!), serverCpuMs })]
}

function readFloor({ pipelinedPerSecond, serialPerSecond }: Record<string, number>): Measurement[] {
  return [
    measurement({ benchmark: 'pipe', variant: '1 kB by key, 32 in flight', perSecond: pipelinedPerSecond }),
    measurement({ benchmark: 'pipe', variant: '1 kB by key, one by one', perSecond: serialPerSecond }),
  ]
}

function stateFloor({ deriveMicroseconds, differenceMicroseconds }: Record<string, number>): Measurement[] {
  const perSecond = (microseconds: number | undefined) => 1e6 / (microseconds ?? Number.NaN)
  return [
    measurement({ benchmark: 'trie', variant: 'one change, 50,000 entries', perSecond: perSecond(deriveMicroseconds) }),
    measurement({ benchmark: 'trie', variant: '20 differences found', perSecond: perSecond(differenceMicroseconds) }),
  ]
}

const start = (program: string): ChildProcess => fork(fileURLToPath(new URL(`./${program}.js`, import.meta.url)))

async function firstMessage(child: ChildProcess): Promise<unknown> {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`a floor program ended with code ${code}`)
  })
  const [message] = await Promise.race([once(child, 'message'), ended])
  return message
}

async function served(program: string, drive: (floor: Floor) => Promise<Measurement[]>): Promise<Measurement[]> {
  const child = start(program)
  const url = String(await firstMessage(child))
  const cpuSeconds = () => usageOfProcess(child.pid)?.cpuSeconds ?? Number.NaN
  try {
    return await drive({
      url,
      async cpuMs(work) {
        const before = cpuSeconds()
        const operations = await work()
        return ((cpuSeconds() - before) * 1_000) / operations
      },
    })
  } finally {
    const ended = once(child, 'exit')
    child.disconnect()
    await ended
  }
}

async function answered(program: string, read: (result: Record<string, number>) => Measurement[]) {
  return read((await firstMessage(start(program))) as Record<string, number>)
}
