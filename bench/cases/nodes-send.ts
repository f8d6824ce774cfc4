import type { Nodes } from '../../test/support/nodes.ts'
import { makeCommunity } from '../community.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import type { Target } from '../target.ts'
import { type Asked, compareWays, costsOf, rateOf, sharedRows, type Way, whoTook } from '../ways.ts'
import { atTwoNodes } from './passed-on.ts'
import { drive } from './send.ts'

export const BENCHMARK = 'nodes-send'
const SENDERS = 64
const WARM_UP_SECONDS = 3

/** Messages at two nodes, one of which serves: how many more than at one, and whether the machine had processors left. */
export const measureNodesSend = (options: BenchOptions): Promise<Measurement[]> => atTwoNodes(options, measure)

/** The same senders each time. Postgres has no share, but what is left. */
async function measure(owner: Target, cluster: Nodes, options: BenchOptions): Promise<Measurement[]> {
  const [first, second] = cluster.nodes.map(({ baseUrl }) => baseUrl) as [string, string]
  const community = { people: SENDERS, rooms: SENDERS, isIn: (person: number, room: number) => room === person }
  const { api, people, roomIds } = await makeCommunity({ ...owner, baseUrl: first }, community)
  await api.close()
  const senders = people.map(({ token }, n) => `${token} ${encodeURIComponent(roomIds[n]!)}`)
  const half = senders.length / 2
  const way = (variant: string, ...asked: (readonly [baseUrl: string, senders: readonly string[]])[]): Way => ({
    variant,
    ask: (each) => Promise.all(asked.map(([baseUrl, some]) => drive(baseUrl, some, each))),
  })
  const ways = [
    way('the node that serves', [first, senders]),
    way('the other one', [second, senders]),
    way('both', [first, senders.slice(0, half)], [second, senders.slice(half)]),
  ]
  for (const one of ways) await one.ask(WARM_UP_SECONDS)
  const compared = await compareWays(cluster, ways, options)
  return [...rows(compared.free, ''), ...sharedRows(BENCHMARK, compared, rows)]
}

function rows(asked: readonly Asked[], under: string): Measurement[] {
  const [alone] = asked
  return asked.map((one) => {
    const ratio = rateOf(one) / rateOf(alone!)
    // What one node takes that has a processor for itself, and whose writing all messages wait for.
    const onPaper = costsOf(alone!)[0] / costsOf(one)[0]
    return measurement({
      benchmark: BENCHMARK,
      variant: `${SENDERS} senders in as many rooms, at ${one.variant}${under}`,
      perSecond: rateOf(one),
      serverCpuMs: costsOf(one).reduce((sum, cost) => sum + cost),
      note: `${ratio.toFixed(2)} times one node by the clock, ${onPaper.toFixed(2)} times by the time of the node that serves; ${whoTook(one)}`,
    })
  })
}
