import { describe, expect, it } from 'vitest'
import { AuthGraph } from '../../../src/core/state/graph.ts'
import { EMPTY_STATE, forEachState, type StateMap, setState } from '../../../src/core/state/trie.ts'
import { SeededRandom } from './random.ts'

interface RandomGraph {
  readonly graph: AuthGraph
  readonly nids: readonly number[]
}

/** Numbers with gaps, some of them beyond 32 bits. */
function randomGraph(random: SeededRandom, size: number): RandomGraph {
  const graph = new AuthGraph()
  const nids: number[] = []
  let nid = random.chance(0.3) ? 2 ** 40 : 0
  for (let index = 0; index < size; index++) {
    nid += 1 + random.below(random.chance(0.05) ? 2 ** 33 : 3)
    const auth = Array.from({ length: Math.min(index, random.below(5)) }, () => random.pick(nids.slice(-20)))
    graph.add(nid, [...new Set(auth)])
    nids.push(nid)
  }
  return { graph, nids }
}

/** States that share most of what they hold, one derived from another. */
function randomStates(random: SeededRandom, nids: readonly number[], count: number): StateMap[] {
  const keyOf = (nid: number) => nids.indexOf(nid) % 50
  const states: StateMap[] = [random.shuffled(nids).slice(0, 20).reduce(withEvent, EMPTY_STATE)]
  function withEvent(state: StateMap, nid: number): StateMap {
    return setState(state, keyOf(nid), nid)
  }
  while (states.length < count) {
    let state = random.pick(states)
    for (let change = random.below(6); change > 0; change--) {
      state = random.chance(0.2) ? setState(state, random.below(50), 0) : withEvent(state, random.pick(nids))
    }
    states.push(state)
  }
  return states
}

function chainOf(graph: AuthGraph, starts: Iterable<number>): Set<number> {
  const chain = new Set(starts)
  for (const nid of chain) for (const auth of graph.authOf(nid)) chain.add(auth)
  return chain
}

function naiveDifference(graph: AuthGraph, states: readonly StateMap[]): number[] {
  const chains = states.map((state) => {
    const own: number[] = []
    forEachState(state, (_, nid) => own.push(nid))
    return chainOf(graph, own)
  })
  const union = new Set(chains.flatMap((chain) => [...chain]))
  return [...union].filter((nid) => !chains.every((chain) => chain.has(nid)))
}

function naiveBetween(graph: AuthGraph, ends: readonly number[]): number[] {
  const below = chainOf(graph, ends)
  return [...below].filter((nid) => ends.some((end) => chainOf(graph, [nid]).has(end)))
}

const sorted = (nids: readonly number[]) => nids.toSorted((a, b) => a - b)

describe('an auth graph', () => {
  it('holds what was added, once', () => {
    const graph = new AuthGraph()
    graph.add(7, [])
    graph.add(2 ** 53 - 1, [7])
    graph.add(9, [7, 2 ** 53 - 1])
    graph.add(9, [])
    expect([graph.size, graph.has(7), graph.has(8), graph.has(2 ** 53 - 1)]).toEqual([3, true, false, true])
    expect(graph.authOf(9)).toEqual([7, 2 ** 53 - 1])
    expect(() => graph.authOf(8)).toThrow(RangeError)
  })

  it('takes no event before its auth events, and so no cycle', () => {
    const graph = new AuthGraph()
    expect(() => graph.add(1, [1])).toThrow(RangeError)
    expect(() => graph.add(1, [2])).toThrow(RangeError)
    expect([graph.size, graph.has(1)]).toEqual([0, false])
    graph.add(2, [])
    graph.add(1, [2])
    expect(graph.authOf(1)).toEqual([2])
  })

  it('keeps 100,000 events in less than 64 bytes each', () => {
    const graph = new AuthGraph()
    for (let nid = 1; nid <= 100_000; nid++) graph.add(nid * 3, nid > 4 ? [3, 6, 9, nid * 3 - 3] : [])
    expect(graph.size).toBe(100_000)
    expect(graph.bytes / graph.size).toBeLessThan(64)
    for (const nid of [5, 70_000, 100_000]) expect(graph.authOf(nid * 3)).toEqual([3, 6, 9, nid * 3 - 3])
  })

  it('tells the same difference of states as sets do', () => {
    for (let seed = 0; seed < 300; seed++) {
      const random = new SeededRandom(seed)
      const { graph, nids } = randomGraph(random, 20 + random.below(150))
      const states = randomStates(random, nids, 1 + random.below(6))
      expect(sorted(graph.difference(states)), `seed ${seed}`).toEqual(sorted(naiveDifference(graph, states)))
    }
  })

  it.each([31, 32, 33, 64, 65, 100])('tells the difference of %i states', (count) => {
    for (let seed = 0; seed < 10; seed++) {
      const random = new SeededRandom(seed)
      const { graph, nids } = randomGraph(random, 100)
      const states = randomStates(random, nids, count)
      expect(sorted(graph.difference(states)), `seed ${seed}`).toEqual(sorted(naiveDifference(graph, states)))
    }
  })

  it('finds no difference where there are not two states', () => {
    const { graph, nids } = randomGraph(new SeededRandom(1), 50)
    const [state] = randomStates(new SeededRandom(1), nids, 1)
    expect([graph.difference([]), graph.difference([state!]), graph.difference([state!, state!])]).toEqual([[], [], []])
  })

  it('finds the same paths between events as sets do', () => {
    for (let seed = 0; seed < 300; seed++) {
      const random = new SeededRandom(seed)
      const { graph, nids } = randomGraph(random, 20 + random.below(100))
      const ends = random.shuffled(nids).slice(0, random.below(8))
      expect(sorted(graph.between(ends)), `seed ${seed}`).toEqual(sorted(naiveBetween(graph, ends)))
    }
  })
})
