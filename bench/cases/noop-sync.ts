import { syncPath } from '../../test/support/api.ts'
import { makeCommunity } from '../community.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget } from '../target.ts'
import { runWrk, type WrkRun } from '../wrk.ts'

export const BENCHMARK = 'noop-sync'
const PEOPLE = 64
const ROOMS = 10

/** Incremental syncs that find nothing new and do not wait. */
export async function measureNoopSync(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  try {
    const isIn = (person: number, room: number) => room === person % ROOMS
    const { api, people } = await makeCommunity(target, { people: PEOPLE, rooms: ROOMS, isIn })
    // The first sync of each person is news for those who have synced before: they see the presence.
    for (const { token } of people) await api.call('GET', syncPath({}), { token })
    const clients: string[] = []
    for (const { token } of people) {
      const { next_batch: since } = await api.call('GET', syncPath({}), { token })
      clients.push(noopLine(token, since))
    }
    await driveNoopSync(target.baseUrl, clients, 2)
    let run: WrkRun | undefined
    const cost = await costOf(target, async () => {
      run = await driveNoopSync(target.baseUrl, clients, options.seconds)
      return run.requests
    })
    await api.close()
    return [measurement({ ...figuresOf(run!), ...cost, diskBytesPerOperation: undefined })]
  } finally {
    await target.close()
  }
}

export const noopLine = (token: string, since: string) =>
  `${token} /_matrix/client/v3/sync?timeout=0&since=${encodeURIComponent(since)}`

export const driveNoopSync = (
  baseUrl: string,
  clients: readonly string[],
  seconds: number,
  connections = PEOPLE,
): Promise<WrkRun> => runWrk({ script: 'get.lua', url: baseUrl, connections, seconds, clients })

export function figuresOf(run: WrkRun) {
  const { p50Ms, p99Ms } = run
  const variant = `${PEOPLE} clients, 10 rooms`
  return { benchmark: BENCHMARK, variant, perSecond: run.requests / run.seconds, p50Ms, p99Ms }
}
