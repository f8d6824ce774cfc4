import { diffState, getState, type StateMap } from './trie.ts'

/** Where states differ: the key numbers, each with the event of every state (0: none), in the order of the states. */
export type Differences = ReadonlyMap<number, readonly number[]>

/** Compares all states with the first. Parts that the tries share are skipped. */
export function differencesOf(states: readonly StateMap[]): Differences {
  const differences = new Map<number, number[]>()
  const [first, ...others] = states
  if (first === undefined) return differences
  for (const [index, other] of others.entries()) {
    diffState(first, other, (key, before, after) => {
      let values = differences.get(key)
      if (values === undefined) {
        values = new Array<number>(states.length).fill(before)
        differences.set(key, values)
      }
      values[index + 1] = after
    })
  }
  return differences
}

/** The distinct events among the values of a key. */
export function eventsAmong(values: readonly number[]): number[] {
  return [...new Set(values)].filter((nid) => nid !== 0)
}

/** Several states, with their differences and agreements. */
export class Disagreement {
  readonly states: readonly StateMap[]
  readonly differences: Differences

  constructor(states: readonly StateMap[]) {
    this.states = states
    this.differences = differencesOf(states)
  }

  /** The event that all states have under a key; 0 if they differ or none has any. */
  agreedOn(key: number): number {
    const [first] = this.states
    return first === undefined || this.differences.has(key) ? 0 : getState(first, key)
  }

  /** The event of one of the states under a key; 0 if none has any. */
  anyAt(key: number): number {
    return eventsAmong(this.differences.get(key) ?? [this.agreedOn(key)])[0] ?? 0
  }
}
