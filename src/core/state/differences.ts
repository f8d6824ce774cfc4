import { diffState, getState, type StateMap } from './trie.ts'

/** Where states differ: the key numbers, each with what every state has there (0: nothing), in the order of the states. */
export type Differences = ReadonlyMap<number, readonly number[]>

/** Compares all states with the first. What tries share is not looked at. */
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

/** States that differ, and what they agree on. */
export class Disagreement {
  readonly states: readonly StateMap[]
  readonly differences: Differences

  constructor(states: readonly StateMap[]) {
    this.states = states
    this.differences = differencesOf(states)
  }

  /** What every state has under a key; 0 where they differ, and where none has anything. */
  agreedOn(key: number): number {
    const [first] = this.states
    return first === undefined || this.differences.has(key) ? 0 : getState(first, key)
  }

  /** An event that some state has under a key; 0 where none has any. */
  anyAt(key: number): number {
    return eventsAmong(this.differences.get(key) ?? [this.agreedOn(key)])[0] ?? 0
  }
}
