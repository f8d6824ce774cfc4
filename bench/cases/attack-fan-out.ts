import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { type Account, type Api, createRoom, openApi } from '../../test/support/api.ts'
import { type DeadServers, openDeadServers, putIntoRoom } from '../../test/support/dead-servers.ts'
import { type Noticed, startBystander } from '../bystander.ts'
import { newPrefix, registerPeople } from '../community.ts'
import { type Measurement, measurement, now } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { openTarget, type Target } from '../target.ts'

export const BENCHMARK = 'attack-fan-out'

const STRANGERS = 10_000
/** Servers in a room that the attacker is in as well. */
const NEIGHBOURS = 1_000
const REPEATED = 5
const SETTLE_MS = 60_000
const WARMING_MS = 10_000

/** One user's requests that name ten thousand servers none of which is there, while another goes on talking to a third. */
export async function measureAttackFanOut(options: BenchOptions): Promise<Measurement[]> {
  if (options.url !== undefined) return []
  const dead = await openDeadServers(STRANGERS + NEIGHBOURS)
  const env = { HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.0/8', HEARTH__LOG__LEVEL: 'info' }
  const target = await openTarget(options, { env })
  const api = openApi(target.baseUrl, { connections: 8 })
  try {
    const [attacker] = await registerPeople(api, target, 1)
    const besieged = await createRoom(api, attacker!.token)
    await addNeighbours(target, besieged, dead.names.slice(0, NEIGHBOURS))
    const bystander = await startBystander(target)
    // A server that has worked is larger than one that has just started.
    await bystander.during(() => pause(WARMING_MS))
    const before = await residentAtRest(target)
    const rows: Measurement[] = []
    for (const [name, act] of attacksOf(api, attacker!, dead)) {
      const took: number[] = []
      const noticed = await bystander.during(async () => {
        for (let n = 0; n < REPEATED; n++) took.push(await timed(act))
        // What was begun on behalf of the attacker goes on after the answer.
        await pause(2_000)
      })
      const peak = target.usage().server?.residentMb
      rows.push(rowOf(name, noticed, { took, peak, before, servers: serversTried(dead) }))
    }
    await bystander.close()
    await pause(SETTLE_MS)
    const after = target.usage().server?.residentMb
    return [
      ...rows,
      measurement({
        benchmark: BENCHMARK,
        variant: 'a minute later',
        note: `${before} MB before, ${after?.toFixed(0)} MB now`,
      }),
    ]
  } finally {
    await api.close()
    await target.close()
    await dead.close()
  }
}

type Attack = readonly [name: string, act: () => Promise<unknown>]

function attacksOf(api: Api, { token }: Account, dead: DeadServers): readonly Attack[] {
  const to = <T>(servers: readonly string[], value: T) =>
    Object.fromEntries(servers.map((server) => [`@somebody:${server}`, value]))
  // Refusals are answers too.
  const call = async (method: 'POST' | 'PUT', path: string, body: object) => {
    await api.call(method, path, { token, body }).catch(() => undefined)
  }
  const [near, far] = [dead.names.slice(0, NEIGHBOURS), dead.names.slice(NEIGHBOURS)]
  const device = { D: 'signed_curve25519' }
  const message = { '*': { text: 'x' } }
  return [
    ['keys/query of strangers', () => call('POST', '/keys/query', { device_keys: to(far, []) })],
    ['keys/claim of strangers', () => call('POST', '/keys/claim', { one_time_keys: to(far, device) })],
    [
      'sendToDevice to strangers',
      () => call('PUT', `/sendToDevice/m.x/${newPrefix()}`, { messages: to(far, message) }),
    ],
    ['keys/query of neighbours', () => call('POST', '/keys/query', { device_keys: to(near, []) })],
    ['keys/claim of neighbours', () => call('POST', '/keys/claim', { one_time_keys: to(near, device) })],
    [
      'sendToDevice to neighbours',
      () => call('PUT', `/sendToDevice/m.x/${newPrefix()}`, { messages: to(near, message) }),
    ],
  ]
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const begun = now()
  await act()
  return now() - begun
}

async function addNeighbours(target: Target, roomId: string, servers: readonly string[]): Promise<void> {
  const client = new pg.Client(target.database())
  await client.connect()
  try {
    await putIntoRoom((sql, values) => client.query(sql, values), roomId, servers)
  } finally {
    await client.end()
  }
  await target.own!.kill('SIGTERM')
  await target.own!.start()
}

async function residentAtRest(target: Target): Promise<number> {
  await pause(3_000)
  return Math.round(target.usage().server?.residentMb ?? 0)
}

const serversTried = ({ attempts }: DeadServers): number => new Set(attempts.map(({ address }) => address)).size

function rowOf(
  name: string,
  { sends, deliveries, failed }: Noticed,
  attack: {
    readonly took: readonly number[]
    readonly peak: number | undefined
    readonly before: number
    readonly servers: number
  },
): Measurement {
  const longest = Math.max(...attack.took).toFixed(0)
  const memory = `${attack.before} MB before, ${attack.peak?.toFixed(0)} MB now`
  return measurement({
    benchmark: BENCHMARK,
    variant: `others' sends during ${name}`,
    ...sends,
    note: `deliveries p99 ${deliveries.p99Ms.toFixed(0)} ms, ${failed} failed; longest attack ${longest} ms; ${attack.servers} servers tried; ${memory}`,
  })
}
