import { setTimeout as pause } from 'node:timers/promises'
import type { Account } from '../../test/support/api.ts'
import { type Community, makeCommunity, newPrefix } from '../community.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { costOf, openTarget, type Target } from '../target.ts'
import { runWrk, type WrkRun } from '../wrk.ts'

export const BENCHMARK = 'send'
const ROOMS = 10
const SENDERS = 64
const WARM_UP_SECONDS = 3
/** The syncing member is a network away, not in the same machine: it asks again this long after each answer. */
const SYNC_PAUSE_MS = 50

export interface Variant {
  readonly name: string
  readonly senders: number
  readonly isOneRoom: boolean
}

export const VARIANTS: readonly Variant[] = [
  { name: '1 sender', senders: 1, isOneRoom: false },
  { name: '10 senders, 10 rooms', senders: 10, isOneRoom: false },
  { name: '64 senders, 10 rooms', senders: 64, isOneRoom: false },
  { name: '64 senders, one room', senders: 64, isOneRoom: true },
]

export async function measureSend(options: BenchOptions): Promise<Measurement[]> {
  const target = await openTarget(options)
  try {
    const community = await makeCommunity(target, {
      people: SENDERS + 1,
      rooms: ROOMS + 1,
      isIn: (person, room) => person === SENDERS || room === ROOMS || room === person % ROOMS,
    })
    const measured: Measurement[] = []
    await drive(target.baseUrl, senderLines(community, VARIANTS[2]!), WARM_UP_SECONDS)
    for (const variant of VARIANTS) measured.push(await measureVariant(target, community, variant, options.seconds))
    await community.api.close()
    return measured
  } finally {
    await target.close()
  }
}

async function measureVariant(target: Target, community: Community, variant: Variant, seconds: number) {
  const member = startSyncing(community, community.people[SENDERS]!)
  let run: WrkRun | undefined
  const cost = await costOf(target, async () => {
    run = await drive(target.baseUrl, senderLines(community, variant), seconds)
    return run.requests
  })
  const syncs = await member.stop()
  return measurement({ ...figuresOf(variant, run!), ...cost, note: `${syncs} syncs by the idle member` })
}

function senderLines({ people, roomIds }: Community, variant: Variant): string[] {
  return people.slice(0, variant.senders).map((person, index) => {
    const roomId = roomIds[variant.isOneRoom ? ROOMS : index % ROOMS]!
    return `${person.token} ${encodeURIComponent(roomId)}`
  })
}

/** The same load on anything that answers the send path. */
export function drive(baseUrl: string, senders: readonly string[], seconds: number): Promise<WrkRun> {
  const url = `${baseUrl}/_matrix/client/v3`
  const word = newPrefix()
  return runWrk({ script: 'send.lua', url, connections: senders.length, seconds, clients: senders, word })
}

export function figuresOf(variant: Variant, run: WrkRun) {
  const { p50Ms, p99Ms } = run
  return { benchmark: BENCHMARK, variant: variant.name, perSecond: run.requests / run.seconds, p50Ms, p99Ms }
}

/** A member of all rooms with a client that is open but says nothing. */
function startSyncing({ api }: Community, member: Account) {
  const stopping = new AbortController()
  let syncs = 0
  const loop = async () => {
    for (let since = ''; !stopping.signal.aborted; syncs += 1) {
      const query = since === '' ? 'timeout=0' : `timeout=30000&since=${encodeURIComponent(since)}`
      const call = { token: member.token, signal: stopping.signal }
      since = (await api.call('GET', `/sync?${query}`, call)).next_batch
      await pause(SYNC_PAUSE_MS, undefined, { signal: stopping.signal })
    }
  }
  const running = loop().catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error
  })
  running.catch(() => undefined)
  return {
    async stop(): Promise<number> {
      stopping.abort()
      await running
      return syncs
    },
  }
}
