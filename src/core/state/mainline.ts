import { compareIntegers } from '../large-integers.ts'
import { compareCodePoints } from '../signing/canonical-json.ts'
import type { AuthGraph } from './graph.ts'
import type { LoadedEvents } from './source.ts'

/** Chains of power-levels events, in which each event refers to the one before it. */
export interface PowerChains {
  readonly graph: AuthGraph
  readonly events: LoadedEvents
  /** The number of the key `m.room.power_levels`. */
  readonly powerKey: number | undefined
}

/**
 * "Mainline ordering" of room version 2: events based on earlier power levels come first, events based on none of the mainline before
 * all others; then by earlier `origin_server_ts`, then by lesser id.
 *
 * @param nids events that are loaded, as are their auth events
 * @param powerLevels the start of the mainline, loaded; 0 if there is none
 */
export async function mainlineOrder(chains: PowerChains, nids: readonly number[], powerLevels: number) {
  const positions = await mainlineFrom(chains, powerLevels)
  const own = nids.map((nid) => previousIn(chains, nid))
  await loadChains(chains, own, (nid) => positions.has(nid))
  const ranked = nids.map((nid, index) => {
    const { id, pdu } = chains.events.get(nid)
    return { nid, position: positionOf(chains, own[index]!, positions), ts: pdu.origin_server_ts, id }
  })
  ranked.sort((a, b) => {
    if (a.position !== b.position) return a.position > b.position ? -1 : 1
    return compareIntegers(a.ts, b.ts) || compareCodePoints(a.id, b.id)
  })
  return ranked.map(({ nid }) => nid)
}

/** Each event of the mainline with its position; the start has 0. */
async function mainlineFrom(chains: PowerChains, start: number): Promise<Map<number, number>> {
  await loadChains(chains, [start], () => false)
  const positions = new Map<number, number>()
  for (let nid = start; nid !== 0; nid = previousIn(chains, nid)) positions.set(nid, positions.size)
  return positions
}

/** The position of the first event of a chain that is on the mainline. Stores the result in `positions` for the events on the way. */
function positionOf(chains: PowerChains, start: number, positions: Map<number, number>): number {
  const passed: number[] = []
  let nid = start
  for (; nid !== 0 && !positions.has(nid); nid = previousIn(chains, nid)) passed.push(nid)
  const position = positions.get(nid) ?? Number.POSITIVE_INFINITY
  for (const other of passed) positions.set(other, position)
  return position
}

/** The power-levels event in an event's auth events; 0 if there is none. */
function previousIn({ events, powerKey }: PowerChains, nid: number): number {
  return events.citedBy(nid, powerKey)?.nid ?? 0
}

/**
 * Loads chains up to their ends, or up to an event with `isEnd`. The type of an event is known only after loading it, so each round loads
 * twice as many levels of auth events as the one before: a chain of n takes log n calls, and loads at most its auth chain.
 */
async function loadChains(chains: PowerChains, starts: readonly number[], isEnd: (nid: number) => boolean) {
  const { graph, events } = chains
  const seen = new Set<number>()
  let frontier = starts
  for (let levels = 1; frontier.length > 0; levels *= 2) {
    await events.load(levelsBelow(graph, frontier, levels))
    const next: number[] = []
    for (let nid of frontier) {
      while (nid !== 0 && !seen.has(nid) && !isEnd(nid)) {
        if (!graph.authOf(nid).every((auth) => events.has(auth))) {
          next.push(nid)
          break
        }
        seen.add(nid)
        nid = previousIn(chains, nid)
      }
    }
    frontier = next
  }
}

/** All events at a distance of at most so many auth edges. */
function levelsBelow(graph: AuthGraph, nids: readonly number[], levels: number): Set<number> {
  const found = new Set<number>()
  let level: Iterable<number> = nids.filter((nid) => nid !== 0)
  for (let depth = 0; depth < levels; depth++) {
    const below = new Set<number>()
    for (const nid of level) {
      for (const auth of graph.authOf(nid)) if (!found.has(auth)) below.add(auth)
    }
    if (below.size === 0) break
    for (const nid of below) found.add(nid)
    level = below
  }
  return found
}
