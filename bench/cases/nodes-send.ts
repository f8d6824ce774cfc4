import type { Nodes } from '../../test/support/nodes.ts'
import { makeCommunity } from '../community.ts'
import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import { processorTimes, usageOfProcess } from '../processes.ts'
import type { Target } from '../target.ts'
import { atTwoNodes } from './passed-on.ts'
import { drive } from './send.ts'

export const BENCHMARK = 'nodes-send'
const SENDERS = 64
const ROUNDS = 4
const WARM_UP_SECONDS = 3

/** Messages at two nodes, one of which serves: how many more than at one, and whether the machine had processors left. */
export const measureNodesSend = (options: BenchOptions): Promise<Measurement[]> => atTwoNodes(options, measure)

interface Way {
  readonly variant: string
  /** The senders of each node that is asked. */
  readonly asked: readonly (readonly [baseUrl: string, senders: readonly string[]])[]
  messages: number
  seconds: number
  readonly cpu: number[]
  idle: number
  processors: number
}

/** The same senders each time, in turn, so that all ways see the same machine. */
async function measure(owner: Target, { nodes }: Nodes, { seconds }: BenchOptions): Promise<Measurement[]> {
  const [first, second] = nodes.map(({ baseUrl }) => baseUrl) as [string, string]
  const community = { people: SENDERS, rooms: SENDERS, isIn: (person: number, room: number) => room === person }
  const { api, people, roomIds } = await makeCommunity({ ...owner, baseUrl: first }, community)
  await api.close()
  const senders = people.map(({ token }, n) => `${token} ${encodeURIComponent(roomIds[n]!)}`)
  const half = senders.length / 2
  const way = (variant: string, ...asked: Way['asked']): Way => ({
    variant,
    asked,
    messages: 0,
    seconds: 0,
    cpu: nodes.map(() => 0),
    idle: 0,
    processors: 0,
  })
  const ways = [
    way('the node that serves', [first, senders]),
    way('the other one', [second, senders]),
    way('both', [first, senders.slice(0, half)], [second, senders.slice(half)]),
  ]
  for (const one of ways) await runOnce(one, nodes, WARM_UP_SECONDS)
  for (const one of ways)
    Object.assign(one, { messages: 0, seconds: 0, cpu: nodes.map(() => 0), idle: 0, processors: 0 })
  const each = Math.max(1, Math.round(seconds / ROUNDS))
  for (let round = 0; round < ROUNDS; round++) for (const one of ways) await runOnce(one, nodes, each)
  return ways.map((one) => measured(one, ways[0]!))
}

async function runOnce(way: Way, nodes: Nodes['nodes'], seconds: number): Promise<void> {
  const cpuOf = () => nodes.map((node) => usageOfProcess(node.pid())?.cpuSeconds ?? 0)
  const [cpuBefore, before] = [cpuOf(), processorTimes()]
  const runs = await Promise.all(way.asked.map(([baseUrl, senders]) => drive(baseUrl, senders, seconds)))
  const [cpuAfter, after] = [cpuOf(), processorTimes()]
  for (const { requests } of runs) way.messages += requests
  way.seconds += runs[0]!.seconds
  for (const [n, end] of cpuAfter.entries()) way.cpu[n]! += end - cpuBefore[n]!
  way.idle += after.idle - before.idle
  way.processors += after.all - before.all
}

function measured({ variant, messages, seconds, cpu, idle, processors }: Way, alone: Way): Measurement {
  const [serves, other] = cpu.map((used) => (used * 1_000) / messages) as [number, number]
  const ratio = messages / seconds / (alone.messages / alone.seconds)
  // What one node takes that has a processor for itself, and whose writing all messages wait for.
  const onPaper = alone.cpu[0]! / alone.messages / (cpu[0]! / messages)
  return measurement({
    benchmark: BENCHMARK,
    variant: `${SENDERS} senders in as many rooms, at ${variant}`,
    perSecond: messages / seconds,
    serverCpuMs: serves + other,
    note:
      `${ratio.toFixed(2)} times one node, ${onPaper.toFixed(2)} times by the time of the node that serves; processors idle for ${((100 * idle) / processors).toFixed(1)} %; ` +
      `${serves.toFixed(3)} ms in the node that serves, ${other.toFixed(3)} ms in the other`,
  })
}
