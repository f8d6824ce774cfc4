import type { Nodes } from '../test/support/nodes.ts'
import { type Measurement, measurement } from './measurement.ts'
import type { BenchOptions } from './options.ts'
import { endedChildrenOf, processorTimes, usageOfProcess } from './processes.ts'
import { whyNoShares, withShares } from './shares.ts'
import type { WrkRun } from './wrk.ts'

/** One way to ask nodes. */
export interface Way {
  readonly variant: string
  /** Asks for so long, and waits for the end of what generates the load. */
  ask(seconds: number): Promise<readonly WrkRun[]>
}

/** What a way gave, all rounds together. */
export interface Asked {
  readonly variant: string
  requests: number
  seconds: number
  /** Processor time of each node, in seconds. */
  readonly nodes: number[]
  /** Processor time of what generates the load, in seconds. */
  user: number
  system: number
  /** How long the processors had nothing to do, of how long they all were there, in seconds. */
  idle: number
  processors: number
}

const ROUNDS = 4
export interface Compared {
  /** All have what the machine has. */
  readonly free: readonly Asked[]
  /** Each node has its share of a processor, and all else has the rest; or why that cannot be. */
  readonly shared: readonly Asked[] | string
  readonly share: number
}

/** Asks in each way in turn, so that all see the same machine. */
export async function compareWays(
  { nodes }: Nodes,
  ways: readonly Way[],
  { seconds, share }: Pick<BenchOptions, 'seconds' | 'share'>,
): Promise<Compared> {
  const why = whyNoShares()
  const nothing = (): Asked[] =>
    ways.map(({ variant }) => ({
      variant,
      requests: 0,
      seconds: 0,
      nodes: nodes.map(() => 0),
      user: 0,
      system: 0,
      idle: 0,
      processors: 0,
    }))
  const [free, shared] = [nothing(), nothing()]
  const each = Math.max(1, Math.round(seconds / ROUNDS))
  const pids = nodes.map((node) => node.pid())
  for (let round = 0; round < ROUNDS; round++) {
    for (const [n, way] of ways.entries()) {
      await addTo(free[n]!, pids, () => way.ask(each))
      if (why === undefined) await withShares(pids, share, () => addTo(shared[n]!, pids, () => way.ask(each)))
    }
  }
  return { free, shared: why ?? shared, share }
}

async function addTo(sum: Asked, pids: readonly number[], ask: () => Promise<readonly WrkRun[]>): Promise<void> {
  const look = () => ({
    nodes: pids.map((pid) => usageOfProcess(pid)?.cpuSeconds ?? 0),
    ended: endedChildrenOf(process.pid),
    all: processorTimes(),
  })
  const before = look()
  const runs = await ask()
  const after = look()
  for (const { requests } of runs) sum.requests += requests
  sum.seconds += runs[0]!.seconds
  for (const [n, end] of after.nodes.entries()) sum.nodes[n]! += end - before.nodes[n]!
  sum.user += after.ended.user - before.ended.user
  sum.system += after.ended.system - before.ended.system
  sum.idle += after.all.idle - before.all.idle
  sum.processors += after.all.all - before.all.all
}

export const rateOf = ({ requests, seconds }: Asked): number => requests / seconds

/** What one request took of each node, in ms. */
export const costsOf = ({ nodes, requests }: Asked): [serving: number, other: number] =>
  nodes.map((used) => (used * 1_000) / requests) as [number, number]

/** For people: who took how much, and whether processors were left. */
export function whoTook(asked: Asked): string {
  const { requests, user, system, idle, processors } = asked
  const [serving, other] = costsOf(asked)
  const ms = (value: number) => value.toFixed(3)
  const generator = `${ms((user * 1_000) / requests)} + ${ms((system * 1_000) / requests)} ms (user + system) in what asks`
  const left = `processors idle for ${((100 * idle) / processors).toFixed(1)} %`
  return `${ms(serving)} ms in the node that serves, ${ms(other)} ms in the other, ${generator}; ${left}`
}

/** The lines of a table for ways with shares, or one that says why there are none. */
export function sharedRows(
  benchmark: string,
  { shared, share }: Compared,
  rows: (asked: readonly Asked[], under: string, more: string) => Measurement[],
): Measurement[] {
  const under = `, each node with ${share} of a processor`
  if (typeof shared === 'string')
    return [measurement({ benchmark, variant: under.slice(2), note: `skipped: ${shared}` })]
  return rows(shared, under, '')
}
