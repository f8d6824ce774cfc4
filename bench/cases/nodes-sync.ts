import { syncPath } from '../../test/support/api.ts'
import type { Nodes } from '../../test/support/nodes.ts'
import { makeCommunity } from '../community.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { socketsOf, usageOfProcess } from '../processes.ts'
import type { Target } from '../target.ts'
import { type Asked, compareWays, costsOf, rateOf, sharedRows, type Way, whoTook } from '../ways.ts'
import { driveFanOut, hotRounds, startingPoint } from './fan-out.ts'
import { driveNoopSync, noopLine } from './noop-sync.ts'
import { atTwoNodes } from './passed-on.ts'

export const BENCHMARK = 'nodes-sync'
const PEOPLE = 64
const ROOMS = 10
const WARM_UP_SECONDS = 2
/** To each node that is asked. So many that the way from one node to the other and back is not what they wait for. */
const CONNECTIONS = 256

/** Syncs at two nodes, one of which serves: how many more than at one find nothing, and how soon a message of one reaches those that the other holds. */
export const measureNodesSync = (options: BenchOptions): Promise<Measurement[]> =>
  atTwoNodes(options, async (owner, cluster, given) => {
    const noop = await measureNoop(owner, cluster, given)
    return [...noop, ...(await measureHeld(owner, cluster, Math.max(...given.members)))]
  })

async function measureNoop(owner: Target, cluster: Nodes, options: BenchOptions): Promise<Measurement[]> {
  const { nodes } = cluster
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
  const at = (n: number, seconds: number) => driveNoopSync(nodes[n]!.baseUrl, clients, seconds, CONNECTIONS)
  for (const n of nodes.keys()) await at(n, WARM_UP_SECONDS)
  const ways: Way[] = [
    { variant: 'one node', ask: async (each) => [await at(0, each)] },
    { variant: 'the other one', ask: async (each) => [await at(1, each)] },
    { variant: 'both', ask: (each) => Promise.all(nodes.map((_, n) => at(n, each))) },
  ]
  const compared = await compareWays(cluster, ways, options)
  const { free } = compared
  const [[alone], [besides, follows]] = free.map(costsOf) as [[number, number], [number, number]]
  // Each of the two nodes gets every second sync, and has a core of its own.
  const onPaper = Math.min(2 / (alone + besides), 2 / follows) * alone
  const byTime = `, ${onPaper.toFixed(2)} times by processor time`
  const rows = (asked: readonly Asked[], under: string, paper: string) =>
    asked.map((one, way) => {
      const ratio = `${(rateOf(one) / rateOf(asked[0]!)).toFixed(2)} times one node by the clock${way === 2 ? paper : ''}`
      return measurement({
        benchmark: BENCHMARK,
        variant: `syncs that find nothing, asked ${one.variant}${under}`,
        perSecond: rateOf(one),
        serverCpuMs: costsOf(one).reduce((sum, cost) => sum + cost),
        note: `${ratio}; ${whoTook(one)}`,
      })
    })
  return [...rows(free, '', byTime), ...sharedRows(BENCHMARK, compared, rows)]
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
