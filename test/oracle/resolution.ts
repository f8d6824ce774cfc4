import { ROOM_VERSIONS, type RoomVersion, type StateResolution } from '../../src/core/room-version.ts'
import type { StateMap } from '../../src/core/state/trie.ts'
import { nidsOf } from '../core/state/held-events.ts'
import { SeededRandom } from '../core/state/random.ts'
import { conflictsIn, isComparable, randomRoom } from '../core/state/random-room.ts'
import { readOracleOptions } from './options.ts'
import { Peer } from './peer.ts'
import { keepResult } from './results.ts'

// npx tsx test/oracle/resolution.ts --python <one that has matrix-synapse> --cases 2000 --seed 1
//
// Random rooms of every version; wherever their branches meet, and for states picked at random, resolved here and by Synapse. Rooms of versions 1 to 6 that have lost their power levels are left out: for these, the
// defaults here are not the published ones.

const ALGORITHMS: readonly StateResolution[] = ['v1', 'v2', 'v2.1']

interface Tally {
  leftOut: number
  rooms: number
  events: number
  conflicts: number
  /** Resolutions whose result is none of the states. */
  mixtures: number
  differences: number
}

function placesOf(state: StateMap): number[] {
  return nidsOf(state).map((nid) => nid - 1)
}

async function compareRoom(peer: Peer, version: RoomVersion, seed: number, tally: Tally): Promise<void> {
  const random = new SeededRandom(seed)
  const room = await randomRoom(version, random, { attempts: 20 + random.below(80) })
  if (!isComparable(room)) {
    tally.leftOut++
    return
  }
  const conflicts = await conflictsIn(room, random)
  const answers = await peer.ask({
    version: version.id,
    events: [...room.events.values()].map(({ id, pdu }) => ({ id, pdu })),
    conflicts: conflicts.map(({ states }) => states.map(placesOf)),
  })
  tally.rooms++
  tally.events += room.events.size
  for (const [index, { states, resolved }] of conflicts.entries()) {
    tally.conflicts++
    if (!states.includes(resolved)) tally.mixtures++
    const [ours, theirs] = [JSON.stringify(placesOf(resolved)), JSON.stringify(answers[index])]
    if (ours === theirs) continue
    if (tally.differences++ > 0) continue
    console.log(`version ${version.id}, seed ${seed}, conflict ${index}: here ${ours}, there ${theirs}`)
  }
}

async function main(): Promise<void> {
  const options = readOracleOptions(2000)
  const peer = await Peer.start(options.python, 'resolution_peer.py')
  console.log(`against ${peer.name}`)
  for (const algorithm of ALGORITHMS.filter((name) => options.only === undefined || options.only === name)) {
    const versions = ROOM_VERSIONS.filter(({ stateResolution }) => stateResolution === algorithm)
    const tally: Tally = { leftOut: 0, rooms: 0, events: 0, conflicts: 0, mixtures: 0, differences: 0 }
    for (let index = 0; tally.rooms < options.cases; index++) {
      await compareRoom(peer, versions[index % versions.length]!, options.seed + index, tally)
    }
    console.log(algorithm, tally)
    const seeds = { firstSeed: options.seed, lastSeed: options.seed + tally.rooms + tally.leftOut - 1 }
    if (options.write) keepResult(`resolution ${algorithm}`, { peer: peer.name, ...seeds, ...tally })
    if (tally.differences > 0) process.exitCode = 1
  }
  peer.stop()
}

await main()
