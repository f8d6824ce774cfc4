import { makeCommunity } from '../community.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { SLIDING_BODY, settledPos, slidingPath } from '../sliding.ts'
import { costOf, openTarget } from '../target.ts'
import { runWrk, type WrkRun } from '../wrk.ts'

export const BENCHMARK = 'sliding-noop'
const PEOPLE = 64
const ROOMS = 10

/** Sliding syncs that find nothing new and do not wait. */
export async function measureSlidingNoop(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  try {
    const isIn = (person: number, room: number) => room === person % ROOMS
    const { api, people } = await makeCommunity(target, { people: PEOPLE, rooms: ROOMS, isIn })
    // The first sync of each person is news for those who have synced before: they see the presence.
    for (const person of people) await settledPos(target.baseUrl, person)
    const clients: string[] = []
    for (const person of people) {
      clients.push(`${person.token} ${slidingPath({ pos: await settledPos(target.baseUrl, person) })} ${SLIDING_BODY}`)
    }
    const drive = (seconds: number) =>
      runWrk({ script: 'post.lua', url: target.baseUrl, connections: PEOPLE, seconds, clients })
    await drive(2)
    let run: WrkRun | undefined
    const cost = await costOf(target, async () => {
      run = await drive(options.seconds)
      return run.requests
    })
    await api.close()
    const { p50Ms, p99Ms, requests, seconds } = run!
    const variant = `${PEOPLE} clients, ${ROOMS} rooms`
    const figures = { benchmark: BENCHMARK, variant, perSecond: requests / seconds, p50Ms, p99Ms }
    return [measurement({ ...figures, ...cost, diskBytesPerOperation: undefined })]
  } finally {
    await target.close()
  }
}
