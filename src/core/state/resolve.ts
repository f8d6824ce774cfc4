import type { RoomVersion, StateResolution } from '../room-version.ts'
import { Disagreement } from './differences.ts'
import type { ResolutionSource } from './source.ts'
import { EMPTY_STATE, getState, type StateMap, setState } from './trie.ts'
import { resolveByDepth } from './v1.ts'
import { resolveByPower } from './v2.ts'

export type { ResolutionSource, StateEvent } from './source.ts'

/** Resolves a disagreement: gives the winning events by key number. Other keys on which the states differ stay unset. */
type Algorithm = (
  version: RoomVersion,
  disagreement: Disagreement,
  source: ResolutionSource,
) => Promise<ReadonlyMap<number, number>>

const ALGORITHMS: Readonly<Record<StateResolution, Algorithm>> = {
  v1: resolveByDepth,
  v2: resolveByPower,
  'v2.1': resolveByPower,
}

/**
 * Resolves the states after several events into one, by the algorithm of the room's version ("State resolution" of room versions
 * 1, 2 and 12). The order of `states` makes no difference.
 *
 * The cost is that of the conflict and its auth chains, and one sweep over numbers for the whole room. The result shares its unchanged parts
 * with the most similar input, and is that input itself if nothing differs.
 *
 * @param source gives events in few batches, however many there are
 */
export async function resolveStates(
  version: RoomVersion,
  states: readonly StateMap[],
  source: ResolutionSource,
): Promise<StateMap> {
  const disagreement = new Disagreement([...new Set(states)])
  if (disagreement.differences.size === 0) return states[0] ?? EMPTY_STATE
  const winners = await ALGORITHMS[version.stateResolution](version, disagreement, source)
  return settle(disagreement, winners)
}

/** The last step of the algorithms: unconflicted state takes precedence over the resolved state. */
function settle(disagreement: Disagreement, winners: ReadonlyMap<number, number>): StateMap {
  let state = nearest(disagreement, winners)
  for (const key of disagreement.differences.keys()) state = setState(state, key, winners.get(key) ?? 0)
  for (const [key, nid] of winners) {
    // Auth events may set keys that no state has any more.
    if (getState(state, key) === 0) state = setState(state, key, nid)
  }
  return state
}

/** The state with the most winning events. */
function nearest({ states, differences }: Disagreement, winners: ReadonlyMap<number, number>): StateMap {
  const wins = states.map(() => 0)
  for (const [key, values] of differences) {
    const winner = winners.get(key) ?? 0
    for (const [index, value] of values.entries()) if (value === winner) wins[index]! += 1
  }
  return states[wins.indexOf(Math.max(...wins))] ?? EMPTY_STATE
}
