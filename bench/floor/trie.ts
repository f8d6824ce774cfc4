/**
 * The least that keeping every state of a large room can cost: a persistent trie with 32-way nodes over short integer keys. A new
 * state shares all but one path with the one before; the difference of two states visits only what they do not share.
 */

const BITS = 5
const WIDTH = 1 << BITS
const LEVELS = 4
const ENTRIES = 50_000
const CHANGES = 20
const ROUNDS = 200_000
const DIFFS = 20_000

type Node = (Node | number | undefined)[]

const newNode = (): Node => new Array<Node | number | undefined>(WIDTH).fill(undefined)

function set(node: Node | undefined, key: number, value: number, level = LEVELS - 1): Node {
  const copy = node === undefined ? newNode() : node.slice()
  const slot = (key >>> (BITS * level)) & (WIDTH - 1)
  copy[slot] = level === 0 ? value : set(copy[slot] as Node | undefined, key, value, level - 1)
  return copy
}

function difference(left: Node | undefined, right: Node | undefined, level = LEVELS - 1): number {
  if (left === right) return 0
  let found = 0
  for (let slot = 0; slot < WIDTH; slot += 1) {
    const a = left?.[slot]
    const b = right?.[slot]
    if (a === b) continue
    found += level === 0 ? 1 : difference(a as Node | undefined, b as Node | undefined, level - 1)
  }
  return found
}

function timed(times: number, act: (round: number) => void): number {
  const begun = performance.now()
  for (let round = 0; round < times; round += 1) act(round)
  return ((performance.now() - begun) * 1_000) / times
}

function main(): void {
  let room: Node = newNode()
  for (let key = 0; key < ENTRIES; key += 1) room = set(room, key, key)
  let latest = room
  const deriveMicroseconds = timed(ROUNDS, (round) => {
    latest = set(latest, (round * 7_919) % ENTRIES, round)
  })
  let fork = room
  for (let change = 0; change < CHANGES; change += 1) fork = set(fork, (change * 2_503) % ENTRIES, -1 - change)
  let found = 0
  const differenceMicroseconds = timed(DIFFS, () => {
    found = difference(room, fork)
  })
  if (found !== CHANGES || latest === room) throw new Error(`found ${found} differences instead of ${CHANGES}`)
  process.send?.({ deriveMicroseconds, differenceMicroseconds }, () => process.exit(0))
}

main()
