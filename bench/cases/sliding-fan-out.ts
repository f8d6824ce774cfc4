import { setTimeout as pause } from 'node:timers/promises'
import { type Account, login, mapConcurrently } from '../../test/support/api.ts'
import { type Community, makeCommunity } from '../community.ts'
import type { FanOutResult } from '../drivers/fan-out.ts'
import { startHolding } from '../drivers/start.ts'
import { type Measurement, measurement } from '../measurement.ts'
import { openMemoryProbe } from '../memory-at-rest.ts'
import type { BenchOptions } from '../options.ts'
import { SLIDING_BODY, settledPos, slidingPath } from '../sliding.ts'
import { costOf, openTarget, type Target } from '../target.ts'
import { deliveriesOf, driveFanOut, figuresOf } from './fan-out.ts'

export const BENCHMARK = 'sliding-fan-out'
const SETTLE_MS = 3_000
/** A device may hold four, and a user 64. */
const HELD = 2_000
const HOLDERS = 125
const DEVICES = 16
const ROOMS_OF_HOLDERS = 20
const POLL_TIMEOUT_MS = 120_000

/** One message to many held sliding syncs, and what each of them holds. */
export async function measureSlidingFanOut(options: BenchOptions): Promise<Measurement[]> {
  const measured = [await measureHeld(options)]
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
  return figuresOf(members, result!).map((row) => measurement({ ...row, benchmark: BENCHMARK, ...shared }))
}

async function settle({ baseUrl }: Target, { people }: Community) {
  // The first sync of each person is news for those who have synced before: they see the presence.
  await mapConcurrently(people, 8, (person) => settledPos(baseUrl, person))
  return mapConcurrently(people.slice(1), 8, async (person) => ({
    token: person.token,
    since: await settledPos(baseUrl, person),
  }))
}

/** What each waiting client holds, by the memory that is left before and after once garbage is collected. */
async function measureHeld(options: BenchOptions): Promise<Measurement> {
  const probe = openMemoryProbe()
  const target = await openTarget(options, probe.wish)
  try {
    const devices = await settleHolders(target)
    const polls = devices.map(({ token, since }) => ({
      token,
      path: slidingPath({ pos: since, timeout: POLL_TIMEOUT_MS }),
      body: SLIDING_BODY,
    }))
    const { hostname, port } = new URL(target.baseUrl)
    const hold = () => startHolding({ host: hostname, port: Number(port), polls, count: HELD })
    // What is made once, for the first crowd, and stays, is no part of what each holds.
    const first = await hold()
    await pause(SETTLE_MS)
    await first.end()
    await pause(SETTLE_MS)
    const before = await probe.read(target)
    const holding = await hold()
    await pause(SETTLE_MS)
    const after = await probe.read(target)
    await holding.end()
    const each = (what: 'heapMb' | 'externalMb' | 'residentMb') =>
      before && after ? (((after[what] - before[what]) * 1_024) / HELD).toFixed(1) : '?'
    const note = `${each('heapMb')} KiB of heap, ${each('externalMb')} of buffers, ${each('residentMb')} resident for each; the goal is 20`
    return measurement({ benchmark: BENCHMARK, variant: `${HELD} held, each in ${ROOMS_OF_HOLDERS} rooms`, note })
  } finally {
    await target.close()
    probe.close()
  }
}

/** Devices that have no news. */
async function settleHolders(target: Target) {
  const { api, people } = await makeCommunity(target, { people: HOLDERS, rooms: ROOMS_OF_HOLDERS, isIn: () => true })
  const owners = Array.from({ length: DEVICES }, () => people).flat()
  const devices = await mapConcurrently(owners, 8, ({ userId }) => login(api, userId))
  await api.close()
  const settled = (device: Account) => settledPos(target.baseUrl, device)
  // The first sync of each person is news for those who have synced before: they see the presence.
  await mapConcurrently(people, 8, settled)
  return mapConcurrently(devices, 8, async (device) => ({ token: device.token, since: await settled(device) }))
}
