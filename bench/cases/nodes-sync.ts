import { syncPath } from '../../test/support/api.ts'
import type { Nodes } from '../../test/support/nodes.ts'
import { makeCommunity } from '../community.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { socketsOf, usageOfProcess } from '../processes.ts'
import type { Target } from '../target.ts'
import { driveFanOut, hotRounds, startingPoint } from './fan-out.ts'
import { driveNoopSync, noopLine } from './noop-sync.ts'
import { atTwoNodes } from './passed-on.ts'

export const BENCHMARK = 'nodes-sync'
const PEOPLE = 64
const ROOMS = 10
const ROUNDS = 4

/** Syncs at two nodes, one of which serves: how many more than at one find nothing, and how soon a message of one reaches those that the other holds. */
export const measureNodesSync = (options: BenchOptions): Promise<Measurement[]> =>
  atTwoNodes(options, async (owner, cluster, { seconds, members }) => {
    const noop = await measureNoop(owner, cluster, seconds)
    return [...noop, ...(await measureHeld(owner, cluster, Math.max(...members)))]
  })

/** One node and both in turn, so that both ways see the same machine. */
async function measureNoop(owner: Target, { nodes }: Nodes, seconds: number): Promise<Measurement[]> {
  const isIn = (person: number, room: number) => room === person % ROOMS
  const { api, people } = await makeCommunity(
    { ...owner, baseUrl: nodes[0]!.baseUrl },
    { people: PEOPLE, rooms: ROOMS, isIn },
  )
  for (const { token } of people) await api.call('GET', syncPath({}), { token })
  const clients: string[] = []
  for (const { token } of people)
    clients.push(noopLine(token, (await api.call('GET', syncPath({}), { token })).next_batch))
  await api.close()
  const ways = ['one node', 'the other one', 'both'].map((variant, way) => ({
    variant,
    asked: way === 2 ? nodes : [nodes[way]!],
    requests: 0,
    seconds: 0,
    cpu: nodes.map(() => 0),
  }))
  for (const { baseUrl } of nodes) await driveNoopSync(baseUrl, clients, 2)
  const each = Math.max(1, Math.round(seconds / ROUNDS))
  for (let round = 0; round < ROUNDS; round++) {
    for (const way of ways) {
      const before = nodes.map((node) => usageOfProcess(node.pid())?.cpuSeconds ?? 0)
      const runs = await Promise.all(way.asked.map(({ baseUrl }) => driveNoopSync(baseUrl, clients, each)))
      const after = nodes.map((node) => usageOfProcess(node.pid())?.cpuSeconds ?? 0)
      for (const { requests } of runs) way.requests += requests
      way.seconds += runs[0]!.seconds
      for (const [at, end] of after.entries()) way.cpu[at]! += end - before[at]!
    }
  }
  const costs = ways.map(({ requests, cpu }) => cpu.map((used) => (used * 1_000) / requests) as [number, number])
  const [[alone], [besides, follows]] = costs as [[number, number], [number, number]]
  // Each of the two nodes gets every second sync, and has a core of its own.
  const onPaper = Math.min(2 / (alone + besides), 2 / follows) * alone
  const [one] = ways
  return ways.map(({ variant, requests, seconds: took }, way) => {
    const [serving, other] = costs[way]!
    const ratio = requests / took / (one!.requests / one!.seconds)
    const paper = way === 2 ? `, ${onPaper.toFixed(2)} times by processor time` : ''
    return measurement({
      benchmark: BENCHMARK,
      variant: `syncs that find nothing, asked ${variant}`,
      perSecond: requests / took,
      serverCpuMs: serving + other,
      note: `${ratio.toFixed(2)} times one node${paper}; ${serving.toFixed(3)} ms in the node that serves, ${other.toFixed(3)} ms in the other`,
    })
  })
}

async function measureHeld(owner: Target, { nodes }: Nodes, members: number): Promise<Measurement[]> {
  const [serving, follower] = nodes
  const community = { people: members + 1, rooms: 1, isIn: () => true }
  const { api, people, roomIds } = await makeCommunity({ ...owner, baseUrl: serving!.baseUrl }, community)
  const listeners: Awaited<ReturnType<typeof startingPoint>>[] = []
  for (const person of people.slice(1)) listeners.push(await startingPoint(api, person))
  const { hostname: host, port } = new URL(serving!.baseUrl)
  const measured: Measurement[] = []
  for (const { where, at } of [
    { where: 'where it is sent', at: serving! },
    { where: 'at the other node', at: follower! },
  ]) {
    const before = nodes.map((node) => usageOfProcess(node.pid())?.cpuSeconds ?? 0)
    let sockets = 0
    const looking = setInterval(() => {
      sockets = Math.max(sockets, socketsOf(serving!.pid()))
    }, 500)
    const result = await driveFanOut(at.baseUrl, {
      room: encodeURIComponent(roomIds[0]!),
      sender: people[0]!.token,
      listeners,
      sustainedSeconds: 1,
      sendTo: { host, port: Number(port) },
    })
    clearInterval(looking)
    const [serves, follows] = nodes.map((node, n) => (usageOfProcess(node.pid())?.cpuSeconds ?? 0) - before[n]!)
    measured.push(
      measurement({
        benchmark: BENCHMARK,
        variant: `${members} listeners ${where}, until the last`,
        ...latenciesOf(hotRounds(result).map(({ lastMs }) => lastMs)),
        note: `${serves!.toFixed(2)} s of the node that serves, ${follows!.toFixed(2)} s of the other; ${sockets} sockets at the node that serves`,
      }),
    )
  }
  await api.close()
  return measured
}
