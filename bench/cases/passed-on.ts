import pg from 'pg'
import { syncPath } from '../../test/support/api.ts'
import { type Nodes, startNodes } from '../../test/support/nodes.ts'
import { makeCommunity } from '../community.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { usageOfProcess } from '../processes.ts'
import { openTarget, type Target } from '../target.ts'
import type { WrkRun } from '../wrk.ts'
import { driveNoopSync, noopLine } from './noop-sync.ts'
import { drive as driveSends } from './send.ts'

export const BENCHMARK = 'passed-on'
const PEOPLE = 64
const ROOMS = 10
const DATABASE = 'nodes'
const ROUNDS = 3

/** What requests cost that a node passes on to the one that serves, beside those that this one gets itself. In turn, so that both see the same machine. */
export const measurePassedOn = (options: BenchOptions): Promise<Measurement[]> => atTwoNodes(options, measure)

/** Measures something at two nodes that it starts and stops; nothing, where the server is not ours. */
export async function atTwoNodes(
  options: BenchOptions,
  measureAt: (owner: Target, cluster: Nodes, options: BenchOptions) => Promise<Measurement[]>,
): Promise<Measurement[]> {
  if (options.url !== undefined) return []
  // Its Postgres has room for another database.
  const owner = await openTarget(options)
  try {
    const cluster = await startTwoNodes(owner)
    try {
      return await measureAt(owner, cluster, options)
    } finally {
      await cluster.close()
    }
  } finally {
    await owner.close()
  }
}

async function startTwoNodes(owner: Target): Promise<Nodes> {
  const connection = owner.database()!
  const client = new pg.Client(connection)
  await client.connect()
  await client.query(`CREATE DATABASE ${DATABASE}`)
  await client.end()
  const { user, host = '', port } = connection
  const url = `postgres://${user}@${encodeURIComponent(host)}:${port}/${DATABASE}`
  return startNodes({ count: 2, url: () => url, env: () => ({ HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4' }) })
}

async function measure(owner: Target, { nodes }: Nodes, { seconds }: BenchOptions): Promise<Measurement[]> {
  const [first] = nodes
  const isIn = (person: number, room: number) => room === person % ROOMS
  const community = { people: PEOPLE, rooms: ROOMS, isIn }
  const { api, people, roomIds } = await makeCommunity({ ...owner, baseUrl: first!.baseUrl }, community)
  const senders = people.map(({ token }, n) => `${token} ${encodeURIComponent(roomIds[n % ROOMS]!)}`)
  for (const { token } of people) await api.call('GET', syncPath({}), { token })
  const clients: string[] = []
  for (const { token } of people)
    clients.push(noopLine(token, (await api.call('GET', syncPath({}), { token })).next_batch))
  await api.close()
  const loads = [
    // What finds nothing comes before there is something.
    { what: 'syncs that find nothing', drive: (url: string, s: number) => driveNoopSync(url, clients, s) },
    { what: 'messages', drive: (url: string, s: number) => driveSends(url, senders, s) },
  ]
  const measured: Measurement[] = []
  for (const { what, drive } of loads) {
    const runs = nodes.map(() => ({
      requests: 0,
      seconds: 0,
      cpu: nodes.map(() => 0),
      last: undefined as WrkRun | undefined,
    }))
    for (const { baseUrl } of nodes) await drive(baseUrl, 2)
    for (let round = 0; round < ROUNDS; round++) {
      for (const [n, { baseUrl }] of nodes.entries()) {
        const before = nodes.map((node) => usageOfProcess(node.pid())?.cpuSeconds ?? 0)
        const run = await drive(baseUrl, Math.max(1, Math.round(seconds / ROUNDS)))
        const after = nodes.map((node) => usageOfProcess(node.pid())?.cpuSeconds ?? 0)
        const sum = runs[n]!
        sum.last = run
        sum.requests += run.requests
        sum.seconds += run.seconds
        for (const [at, end] of after.entries()) sum.cpu[at]! += end - before[at]!
      }
    }
    for (const [n, { requests, seconds: took, cpu, last }] of runs.entries()) {
      const [serves, passes] = cpu.map((used) => (used * 1_000) / requests) as [number, number]
      measured.push(
        measurement({
          benchmark: BENCHMARK,
          variant: `${what}, ${n === 0 ? 'asked the node that serves' : 'asked the other one'}`,
          perSecond: requests / took,
          p50Ms: last!.p50Ms,
          p99Ms: last!.p99Ms,
          serverCpuMs: serves + passes,
          note: `${serves.toFixed(3)} ms in the node that serves, ${passes.toFixed(3)} ms in the other`,
        }),
      )
    }
  }
  return measured
}
