import { setTimeout as pause } from 'node:timers/promises'
import { type Account, login, mapConcurrently, syncPath } from '../../test/support/api.ts'
import { makeCommunity } from '../community.ts'
import { startHolding } from '../drivers/start.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'idle'
const SETTLE_MS = 3_000
const HELD = 10_000
/** A device may hold four, and a user 64. */
const PEOPLE = 160
const DEVICES = 16

/** Memory at rest, and with many clients that wait for news; with our own server also the time of its starts. */
export async function measureIdle(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  try {
    const starts = target.own === undefined ? [] : [started(target, 'first start, until ready')]
    if (target.own !== undefined) {
      await target.own.kill('SIGTERM')
      await target.own.start()
      starts.push(started(target, 'later start, until ready'))
    }
    await pause(SETTLE_MS)
    return [...starts, memory(target, 'nobody connected'), await measureHeld(target)]
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

async function measureHeld(target: Target): Promise<Measurement> {
  const { api, people } = await makeCommunity(target, { people: PEOPLE, rooms: 1, isIn: () => true })
  const before = target.usage().server?.residentMb
  const owners = Array.from({ length: DEVICES }, () => people).flat()
  const devices = await mapConcurrently(owners, 8, ({ userId }) => login(api, userId))
  const startingPoint = ({ token }: Account) => api.call('GET', syncPath({}), { token })
  // The first sync of each person is news for the others: they see the presence.
  await mapConcurrently(people, 8, startingPoint)
  const polls = await mapConcurrently(devices, 8, async (device) => {
    const { next_batch: since } = await startingPoint(device)
    return { token: device.token, path: `/_matrix/client/v3${syncPath({ since, timeout: 120_000 })}` }
  })
  const { hostname, port } = new URL(target.baseUrl)
  const holding = await startHolding({ host: hostname, port: Number(port), polls, count: HELD })
  await pause(SETTLE_MS)
  const measured = memory(target, `${HELD} syncs held`)
  await holding.end()
  await api.close()
  return before === undefined
    ? measured
    : { ...measured, note: `${measured.note}, ${before.toFixed(0)} MB before them` }
}
