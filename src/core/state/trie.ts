/**
 * A persistent map from small dense integers to positive integers. A room's state in memory is such a map, from the room's key numbers
 * to event numbers. Setting a key copies the path to it and shares everything else, so the cost of deriving or comparing
 * states depends on the change, not on the room.
 *
 * 32-way, grown at the root; a missing key reads as 0.
 */
export interface StateMap {
  readonly root: Node
  /** Levels below the root; the root spans 32^(height + 1) keys. */
  readonly height: number
  /** Keys that are set. */
  readonly size: number
}

type Leaf = readonly number[]
type Branch = readonly (Node | undefined)[]
type Node = Leaf | Branch

const BITS = 5
const WIDTH = 1 << BITS
const MASK = WIDTH - 1

const EMPTY_LEAF: Leaf = []

export const EMPTY_STATE: StateMap = { root: EMPTY_LEAF, height: 0, size: 0 }

/** The value under `key`, 0 when there is none. */
export function getState(state: StateMap, key: number): number {
  if (key >>> (BITS * (state.height + 1)) !== 0) return 0
  let node: Node | undefined = state.root
  for (let level = state.height; level > 0; level--) {
    node = (node as Branch)[(key >>> (level * BITS)) & MASK]
    if (node === undefined) return 0
  }
  return (node as Leaf)[key & MASK] ?? 0
}

/** The map with `key` set; `value` 0 removes it. Gives the same map back when nothing changes. */
export function setState(state: StateMap, key: number, value: number): StateMap {
  const before = getState(state, key)
  if (before === value) return state
  let { root, height } = state
  while (key >>> (BITS * (height + 1)) !== 0) {
    root = [root]
    height++
  }
  const size = state.size + (before === 0 ? 1 : 0) - (value === 0 ? 1 : 0)
  return { root: setIn(root, height, key, value), height, size }
}

function setIn(node: Node | undefined, level: number, key: number, value: number): Node {
  const index = (key >>> (level * BITS)) & MASK
  if (level === 0) {
    const leaf = (node ?? EMPTY_LEAF).slice() as number[]
    while (leaf.length < index) leaf.push(0)
    leaf[index] = value
    return leaf
  }
  const branch = (node ?? []).slice() as (Node | undefined)[]
  while (branch.length < index) branch.push(undefined)
  branch[index] = setIn(branch[index], level - 1, key, value)
  return branch
}

/** Calls `visit(key, value)` for each set key, in ascending order of keys. */
export function forEachState(state: StateMap, visit: (key: number, value: number) => void): void {
  walk(state.root, state.height, 0, visit)
}

function walk(node: Node, level: number, base: number, visit: (key: number, value: number) => void): void {
  for (let index = 0; index < node.length; index++) {
    const child = node[index]
    if (!child) continue
    const key = (base << BITS) | index
    if (level === 0) visit(key, child as number)
    else walk(child as Node, level - 1, key, visit)
  }
}

/** Calls `visit(key, before, after)` for each key whose value differs; shared parts are not looked at. */
export function diffState(
  before: StateMap,
  after: StateMap,
  visit: (key: number, before: number, after: number) => void,
): void {
  const height = Math.max(before.height, after.height)
  diffNode(raise(before, height), raise(after, height), height, 0, visit)
}

function raise(state: StateMap, height: number): Node {
  let node = state.root
  for (let level = state.height; level < height; level++) node = [node]
  return node
}

function diffNode(
  before: Node | undefined,
  after: Node | undefined,
  level: number,
  base: number,
  visit: (key: number, before: number, after: number) => void,
): void {
  if (before === after) return
  const width = Math.max(before?.length ?? 0, after?.length ?? 0)
  for (let index = 0; index < width; index++) {
    const key = (base << BITS) | index
    const left = before?.[index]
    const right = after?.[index]
    if (left === right) continue
    if (level > 0) diffNode(left as Node | undefined, right as Node | undefined, level - 1, key, visit)
    else if ((left ?? 0) !== (right ?? 0))
      visit(key, (left as number | undefined) ?? 0, (right as number | undefined) ?? 0)
  }
}

/** One more than the highest key that the map has room for; 0 for an empty map. It is the number of values in the packed form. */
export function stateSpan(state: StateMap): number {
  let node: Node | undefined = state.root
  let span = 0
  for (let level = state.height; level > 0; level--) {
    if (node === undefined || node.length === 0) return span
    span |= (node.length - 1) << (level * BITS)
    node = (node as Branch)[node.length - 1]
  }
  return span + (node?.length ?? 0)
}

/** The approximate memory of a map, in bytes. */
export function stateBytes(state: StateMap): number {
  return MAP_BYTES + SLOT_BYTES * stateSpan(state)
}

/** The approximate memory of the parts that a map does not share with another. */
export function bytesBeyond(shared: StateMap, state: StateMap): number {
  const height = Math.max(shared.height, state.height)
  return MAP_BYTES + ownBytes(raise(shared, height), raise(state, height), height)
}

/** Memory of a map itself, and of each key with its share of the nodes above. */
const MAP_BYTES = 96
const SLOT_BYTES = 9

function ownBytes(shared: Node | undefined, node: Node, level: number): number {
  if (node === shared) return 0
  let bytes = SLOT_BYTES * (node.length + 2)
  if (level === 0) return bytes
  for (let index = 0; index < node.length; index++) {
    const child = node[index]
    if (child) bytes += ownBytes(shared?.[index] as Node | undefined, child as Node, level - 1)
  }
  return bytes
}

/** Builds a map from an array of values by key, with 0 for unset keys. Takes linear time. */
export function buildState(values: readonly number[]): StateMap {
  let size = 0
  let nodes: (Node | undefined)[] = []
  for (let first = 0; first < values.length; first += WIDTH) {
    const leaf = values.slice(first, first + WIDTH)
    const set = countSet(leaf)
    size += set
    nodes.push(set === 0 ? undefined : leaf)
  }
  let height = 0
  for (; nodes.length > 1; height++) {
    const parents: (Node | undefined)[] = []
    for (let first = 0; first < nodes.length; first += WIDTH) parents.push(nodes.slice(first, first + WIDTH))
    nodes = parents
  }
  return { root: nodes[0] ?? EMPTY_LEAF, height, size }
}

function countSet(leaf: Leaf): number {
  let count = 0
  for (let index = 0; index < leaf.length; index++) if (leaf[index] !== 0) count++
  return count
}

/**
 * The format of a checkpoint: one byte with the number of bytes per value, then the values of all keys from 0 on, big-endian,
 * with 0 for unset keys. Keys are dense, so this is smaller than pairs, and a single value can be read alone.
 */
export function packState(state: StateMap): Buffer {
  let largest = 0
  let span = 0
  forEachState(state, (key, value) => {
    if (value > largest) largest = value
    span = key + 1
  })
  let width = 1
  while (largest >= 256 ** width) width++
  const packed = Buffer.alloc(1 + span * width)
  packed[0] = width
  forEachState(state, (key, value) => {
    let rest = value
    for (let at = (key + 1) * width; at > key * width; at--) {
      packed[at] = rest
      rest = Math.floor(rest / 256)
    }
  })
  return packed
}

export function unpackState(packed: Buffer): StateMap {
  return buildState(unpackValues(packed))
}

/** The values of a packed state by key, as a new array for {@link buildState}. */
export function unpackValues(packed: Buffer): number[] {
  const width = packed[0] ?? 1
  const values: number[] = []
  for (let at = 1; at + width <= packed.length; at += width) values.push(bigEndian(packed, at, at + width))
  return values
}

/** A value of a packed state, from its own bytes. */
export function unpackValue(bytes: Buffer): number {
  return bigEndian(bytes, 0, bytes.length)
}

function bigEndian(bytes: Buffer, from: number, to: number): number {
  let value = 0
  for (let at = from; at < to; at++) value = value * 256 + bytes[at]!
  return value
}
