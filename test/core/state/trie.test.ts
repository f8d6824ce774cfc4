import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  buildState,
  diffState,
  EMPTY_STATE,
  forEachState,
  getState,
  packState,
  type StateMap,
  setState,
  stateSpan,
  unpackState,
  unpackValue,
  unpackValues,
} from '../../../src/core/state/trie.ts'

/** Keys around the places where the tree grows a level, and values around those where a number takes another form. */
const key = fc.oneof(fc.nat(70), fc.constantFrom(31, 32, 33, 1023, 1024, 1025, 32_767, 32_768), fc.nat(40_000))
const value = fc.oneof(fc.nat(300), fc.constantFrom(0, 255, 256, 2 ** 31, 2 ** 32, 2 ** 48 + 5, 2 ** 53 - 1))
const changes = fc.array(fc.tuple(key, value), { maxLength: 60 })
type Changes = readonly (readonly [number, number])[]

const stateOf = (some: Changes, start = EMPTY_STATE): StateMap =>
  some.reduce((state, [k, v]) => setState(state, k, v), start)

function mapOf(some: Changes, start: ReadonlyMap<number, number> = new Map()): Map<number, number> {
  const map = new Map(start)
  for (const [k, v] of some) {
    if (v === 0) map.delete(k)
    else map.set(k, v)
  }
  return map
}

function entriesOf(state: StateMap): [number, number][] {
  const entries: [number, number][] = []
  forEachState(state, (k, v) => entries.push([k, v]))
  return entries
}

const sorted = (map: ReadonlyMap<number, number>) => [...map].sort(([a], [b]) => a - b)

function expectSame(state: StateMap, map: ReadonlyMap<number, number>): void {
  expect(entriesOf(state)).toEqual(sorted(map))
  expect(state.size).toBe(map.size)
  for (const [k, v] of map) expect(getState(state, k)).toBe(v)
}

describe('a state in memory', () => {
  it('is a map from keys to values', () => {
    fc.assert(
      fc.property(changes, fc.array(key), (some, asked) => {
        const [state, map] = [stateOf(some), mapOf(some)]
        expectSame(state, map)
        for (const k of asked) expect(getState(state, k)).toBe(map.get(k) ?? 0)
      }),
    )
  })

  it('never changes: what is derived from it leaves it as it was', () => {
    fc.assert(
      fc.property(changes, changes, (first, then) => {
        const state = stateOf(first)
        const before = JSON.stringify(state)
        stateOf(then, state)
        expect(JSON.stringify(state)).toBe(before)
      }),
    )
  })

  it('is the same object when nothing changes', () => {
    fc.assert(
      fc.property(changes, (some) => {
        const state = stateOf(some)
        for (const [k, v] of mapOf(some)) expect(setState(state, k, v)).toBe(state)
        expect(setState(state, 2 ** 31 - 1, 0)).toBe(state)
      }),
    )
  })

  it('differs from another in exactly the keys whose values differ, in order', () => {
    fc.assert(
      fc.property(changes, changes, changes, (shared, left, right) => {
        const start = stateOf(shared)
        const maps = [mapOf(left, mapOf(shared)), mapOf(right, mapOf(shared))] as const
        const found: number[][] = []
        diffState(stateOf(left, start), stateOf(right, start), (...difference) => found.push(difference))
        const keys = [...new Set([...maps[0].keys(), ...maps[1].keys()])].sort((a, b) => a - b)
        const expected = keys.map((k) => [k, maps[0].get(k) ?? 0, maps[1].get(k) ?? 0]).filter(([, a, b]) => a !== b)
        expect(found).toEqual(expected)
      }),
    )
  })
})

describe('a state made at once', () => {
  const values = fc.array(value, { maxLength: 3000 })

  it('is the one made change by change, and grows like it', () => {
    fc.assert(
      fc.property(values, changes, (all, later) => {
        const entries = all.map((v, k) => [k, v] as const)
        expectSame(buildState(all), mapOf(entries))
        expectSame(stateOf(later, buildState(all)), mapOf(later, mapOf(entries)))
      }),
    )
  })

  it('shares nothing with the list it was made of', () => {
    const list = [1, 2, 3]
    const state = buildState(list)
    list[1] = 9
    expect(getState(state, 1)).toBe(2)
  })

  it('may be of any length', () => {
    for (const length of [0, 1, 31, 32, 33, 1023, 1024, 1025, 32_768, 32_769, 50_000]) {
      const list = Array.from({ length }, (_, k) => k + 1)
      const state = buildState(list)
      expect(state.size).toBe(length)
      expect(stateSpan(state)).toBe(length)
      expect(unpackValues(packState(state))).toEqual(list)
    }
  })
})

describe('a packed state', () => {
  it('comes out of its bytes as it went in', () => {
    fc.assert(
      fc.property(changes, (some) => {
        const packed = packState(stateOf(some))
        expectSame(unpackState(packed), mapOf(some))
        expect(packState(unpackState(packed)).equals(packed)).toBe(true)
      }),
    )
  })

  it('has the value of each key in a place of its own', () => {
    fc.assert(
      fc.property(changes, (some) => {
        const packed = packState(stateOf(some))
        const width = packed[0]!
        for (const [k, v] of mapOf(some)) {
          expect(unpackValue(packed.subarray(1 + k * width, 1 + (k + 1) * width))).toBe(v)
        }
      }),
    )
  })

  it('takes as many bytes a key as the largest value needs', () => {
    expect(packState(EMPTY_STATE)).toEqual(Buffer.from([1]))
    expect(packState(buildState([1, 0, 255]))).toEqual(Buffer.from([1, 1, 0, 255]))
    expect(packState(buildState([1, 256]))).toEqual(Buffer.from([2, 0, 1, 1, 0]))
    expect(packState(buildState([2 ** 53 - 1])).length).toBe(8)
  })

  it('spans up to its highest key', () => {
    fc.assert(
      fc.property(changes, (some) => {
        const span = stateSpan(stateOf(some))
        for (const k of mapOf(some).keys()) expect(k).toBeLessThan(span)
        expect(span).toBeLessThanOrEqual(Math.max(0, ...some.map(([k]) => k + 1)))
      }),
    )
  })
})
