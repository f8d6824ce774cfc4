import type { JsonObject, JsonValue } from '../../src/core/json.ts'
import { encodeCanonical } from '../../src/core/signing/canonical-json.ts'
import { SeededRandom } from '../core/state/random.ts'
import { readOracleOptions } from './options.ts'
import { Peer } from './peer.ts'
import { keepResult } from './results.ts'

// npx tsx test/oracle/canonical-json.ts --python <one that has canonicaljson> --cases 100000 --seed 1
//
// Random JSON trees, within what canonical JSON allows, are encoded here and by canonicaljson.

const TREES_PER_QUESTION = 500
const MAX_DEPTH = 6
/** Characters that encoders treat in ways of their own: controls, quotes, what JavaScript or HTML escape, surrogate pairs. */
const ODD_CHARACTERS = [
  ...['"', '\\', '/', '\b', '\f', '\n', '\r', '\t', '\0', '\u0001', '\u001f', '\u007f', '\u0080', '\u00a0'],
  ...[
    '<',
    '&',
    "'",
    '\u2028',
    '\u2029',
    '\ud7ff',
    '\ue000',
    '\ufeff',
    '\uffff',
    '\u{10000}',
    '\u{1f600}',
    '\u{10ffff}',
  ],
  ...['é', 'e\u0301', 'ß', '日', 'ı'],
]
const ODD_KEYS = ['__proto__', 'constructor', '0', '10', '9', '', '\uffff', '\u{10000}', 'a', 'A', 'aa']

function randomText(random: SeededRandom): string {
  const length = random.chance(0.1) ? random.below(60) : random.below(8)
  const character = () =>
    random.chance(0.3) ? random.pick(ODD_CHARACTERS) : String.fromCharCode(random.pick([32, 97]) + random.below(26))
  return Array.from({ length }, character).join('')
}

function randomInteger(random: SeededRandom): number {
  const bits = random.below(54)
  const size = Math.floor(random.next() * 2 ** bits)
  // JSON has no negative zero that canonical JSON would keep.
  return random.chance(0.5) || size === 0 ? size : -size
}

function randomTree(random: SeededRandom, depth: number): JsonValue {
  const kind = random.below(depth >= MAX_DEPTH ? 4 : 8)
  if (kind === 0) return random.pick([null, true, false, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])
  if (kind === 1) return randomInteger(random)
  if (kind <= 3) return randomText(random)
  const length = random.below(6)
  if (kind === 4) return Array.from({ length }, () => randomTree(random, depth + 1))
  const members = Array.from({ length }, () => {
    const key = random.chance(0.3) ? random.pick(ODD_KEYS) : randomText(random)
    return [key, randomTree(random, depth + 1)] as const
  })
  return Object.fromEntries(members) as JsonObject
}

async function main(): Promise<void> {
  const { python, cases, seed, write } = readOracleOptions(100_000)
  const peer = await Peer.start(python, 'canonical_json_peer.py')
  console.log(`against ${peer.name}`)
  const random = new SeededRandom(seed)
  const tally = { trees: 0, bytes: 0, differences: 0 }
  while (tally.trees < cases) {
    const trees = Array.from({ length: TREES_PER_QUESTION }, () => randomTree(random, 0))
    const answers = await peer.ask({ trees })
    for (const [index, tree] of trees.entries()) {
      const ours = encodeCanonical(tree)
      tally.trees++
      tally.bytes += Buffer.byteLength(ours)
      if (ours === answers[index]) continue
      if (tally.differences++ === 0) console.log(`seed ${seed}: here ${ours}, there ${String(answers[index])}`)
    }
  }
  console.log(tally)
  if (write) keepResult('canonical JSON', { peer: peer.name, seed, ...tally })
  if (tally.differences > 0) process.exitCode = 1
  peer.stop()
}

await main()
