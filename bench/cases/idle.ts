import { setTimeout as pause } from 'node:timers/promises'
import { type Account, type Api, login, mapConcurrently, syncPath } from '../../test/support/api.ts'
import { makeCommunity } from '../community.ts'
import type { HeldPoll } from '../drivers/hold.ts'
import { startHolding } from '../drivers/start.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { SLIDING_BODY, slidingPath, timedSliding } from '../sliding.ts'
import { openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'idle'
const SETTLE_MS = 3_000
const HELD = 10_000
/** A device may hold four, and a user 64. */
const PEOPLE = 160
const DEVICES = 16
const TIMEOUT_MS = 120_000

/** Memory at rest, and with many clients that wait for news; with our own server also the time of its starts. */
export async function measureIdle(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  try {
    const starts = target.own === undefined ? [] : [started(target, 'first start, until ready')]
    if (target.own !== undefined) {
      await restart(target)
      starts.push(started(target, 'later start, until ready'))
    }
    await pause(SETTLE_MS)
    return [...starts, memory(target, 'nobody connected'), ...(await measureHeld(target))]
  } finally {
    await target.close()
  }
}

const started = (target: Target, variant: string) =>
  measurement({ benchmark: BENCHMARK, variant, p50Ms: target.own?.startedInMs() })

function memory(target: Target, variant: string): Measurement {
  const { server, postgres } = target.usage()
  return measurement({
    benchmark: BENCHMARK,
    variant,
    serverPeakMb: server?.peakMb,
    postgresMb: postgres?.proportionalMb,
    note: server === undefined ? undefined : `${server.residentMb.toFixed(0)} MB resident now`,
  })
}

async function measureHeld(target: Target): Promise<Measurement[]> {
  const { api, people } = await makeCommunity(target, { people: PEOPLE, rooms: 1, isIn: () => true })
  // The first sync of each person is news for the others: they see the presence.
  await mapConcurrently(people, 8, (person) => nextBatch(api, person))
  const owners = Array.from({ length: DEVICES }, () => people).flat()
  const devices = await mapConcurrently(owners, 8, ({ userId }) => login(api, userId))
  const kinds = {
    syncs: (device: Account) => classicPoll(api, device),
    'sliding syncs': (device: Account) => slidingPoll(target.baseUrl, device),
  }
  const measured: Measurement[] = []
  for (const [name, pollOf] of Object.entries(kinds)) {
    if (measured.length > 0) await restart(target)
    const polls = await mapConcurrently(devices, 8, pollOf)
    await pause(SETTLE_MS)
    const before = target.usage().server?.residentMb
    const { hostname, port } = new URL(target.baseUrl)
    const holding = await startHolding({ host: hostname, port: Number(port), polls, count: HELD })
    await pause(SETTLE_MS)
    const figures = memory(target, `${HELD} ${name} held`)
    await holding.end()
    measured.push(
      before === undefined ? figures : { ...figures, note: `${figures.note}, ${before.toFixed(0)} MB before them` },
    )
  }
  await api.close()
  return measured
}

/** The memory of polls that ended would hold the next ones, and hide what they need. */
async function restart({ own }: Target): Promise<void> {
  await own?.kill('SIGTERM')
  await own?.start()
}

async function nextBatch(api: Api, { token }: Account): Promise<string> {
  const { next_batch: since } = await api.call('GET', syncPath({}), { token })
  return String(since)
}

async function classicPoll(api: Api, device: Account): Promise<HeldPoll> {
  const since = await nextBatch(api, device)
  return { token: device.token, path: `/_matrix/client/v3${syncPath({ since, timeout: TIMEOUT_MS })}` }
}

async function slidingPoll(baseUrl: string, device: Account): Promise<HeldPoll> {
  const { pos } = await timedSliding(baseUrl, device)
  return { token: device.token, path: slidingPath({ pos, timeout: TIMEOUT_MS }), body: SLIDING_BODY }
}
