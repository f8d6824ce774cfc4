import { setTimeout as pause } from 'node:timers/promises'
import { mapConcurrently } from '../../test/support/api.ts'
import { type Community, makeCommunity } from '../community.ts'
import type { FanOutResult } from '../drivers/fan-out.ts'
import { startHolding } from '../drivers/start.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { SLIDING_BODY, settledPos, slidingPath } from '../sliding.ts'
import { costOf, openTarget, type Target } from '../target.ts'
import { deliveriesOf, driveFanOut, figuresOf } from './fan-out.ts'

export const BENCHMARK = 'sliding-fan-out'
const SETTLE_MS = 3_000
const POLL_TIMEOUT_MS = 120_000

/** One message to many held sliding syncs, and what each of them holds. */
export async function measureSlidingFanOut(options: BenchOptions): Promise<Measurement[]> {
  const measured: Measurement[] = []
  for (const members of options.members) {
    const target = await openTarget(options)
    try {
      measured.push(...(await measureCrowd(target, members, options.seconds)))
    } finally {
      await target.close()
    }
  }
  return measured
}

async function measureCrowd(target: Target, members: number, seconds: number): Promise<Measurement[]> {
  const community = await makeCommunity(target, { people: members + 1, rooms: 1, isIn: () => true })
  const held = await measureHeld(target, community)
  const sender = community.people[0]!.token
  const listeners = await settle(target, community)
  let result: FanOutResult | undefined
  const cost = await costOf(target, async () => {
    result = await driveFanOut(target.baseUrl, {
      room: encodeURIComponent(community.roomIds[0]!),
      sender,
      listeners,
      sustainedSeconds: seconds,
      polling: { path: slidingPath({ timeout: POLL_TIMEOUT_MS, pos: '' }), body: SLIDING_BODY, key: 'pos' },
    })
    return deliveriesOf(members, result)
  })
  await community.api.close()
  const { diskBytesPerOperation: _, ...shared } = cost
  const figures = figuresOf(members, result!).map((row) => measurement({ ...row, benchmark: BENCHMARK, ...shared }))
  return [held, ...figures]
}

async function settle({ baseUrl }: Target, { people }: Community) {
  // The first sync of each person is news for those who have synced before: they see the presence.
  await mapConcurrently(people, 8, (person) => settledPos(baseUrl, person))
  return mapConcurrently(people.slice(1), 8, async (person) => ({
    token: person.token,
    since: await settledPos(baseUrl, person),
  }))
}

async function measureHeld(target: Target, community: Community): Promise<Measurement> {
  const listeners = await settle(target, community)
  await pause(SETTLE_MS)
  const residentMb = () => target.usage().server?.residentMb
  const before = residentMb()
  const polls = listeners.map(({ token, since }) => ({
    token,
    path: slidingPath({ pos: since, timeout: POLL_TIMEOUT_MS }),
    body: SLIDING_BODY,
  }))
  const { hostname, port } = new URL(target.baseUrl)
  const holding = await startHolding({ host: hostname, port: Number(port), polls, count: polls.length })
  await pause(SETTLE_MS)
  const after = residentMb()
  await holding.end()
  const each = before === undefined || after === undefined ? undefined : ((after - before) * 1_024) / polls.length
  const note = each === undefined ? '' : `${each.toFixed(1)} KiB resident for each`
  return measurement({ benchmark: BENCHMARK, variant: `${polls.length} held`, note })
}
