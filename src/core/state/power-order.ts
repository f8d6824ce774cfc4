import { compareIntegers, type Integer } from '../large-integers.ts'
import { compareCodePoints } from '../signing/canonical-json.ts'
import type { AuthGraph } from './graph.ts'
import { Heap } from './heap.ts'
import type { LoadedEvents } from './source.ts'

interface Ranked {
  readonly nid: number
  readonly level: Integer
  readonly ts: Integer
  readonly id: string
}

/**
 * Room version 2, "Reverse topological power ordering": auth events come before the events that refer to them. Among the possible next
 * events, greater power of the sender comes first, then earlier `origin_server_ts`, then lesser id.
 *
 * @param levelOf the power of an event's sender by the event's own auth events
 */
export function powerOrder(
  nids: ReadonlySet<number>,
  graph: AuthGraph,
  events: LoadedEvents,
  levelOf: (nid: number) => Integer,
): number[] {
  const rank = (nid: number): Ranked => {
    const { id, pdu } = events.get(nid)
    return { nid, level: levelOf(nid), ts: pdu.origin_server_ts, id }
  }
  const citing = new Map<number, number[]>()
  const awaited = new Map<number, number>()
  const free = new Heap(compareRanks)
  for (const nid of nids) {
    const auth = new Set(graph.authOf(nid).filter((cited) => nids.has(cited)))
    awaited.set(nid, auth.size)
    if (auth.size === 0) free.push(rank(nid))
    for (const cited of auth) {
      const others = citing.get(cited)
      if (others) others.push(nid)
      else citing.set(cited, [nid])
    }
  }
  const order: number[] = []
  for (let next = free.pop(); next !== undefined; next = free.pop()) {
    order.push(next.nid)
    for (const nid of citing.get(next.nid) ?? []) {
      const left = awaited.get(nid)! - 1
      awaited.set(nid, left)
      if (left === 0) free.push(rank(nid))
    }
  }
  return order
}

/** Compares levels without subtraction, because they may be infinite. */
function compareRanks(a: Ranked, b: Ranked): number {
  if (a.level !== b.level) return a.level > b.level ? -1 : 1
  return compareIntegers(a.ts, b.ts) || compareCodePoints(a.id, b.id)
}
