import { writeFileSync } from 'node:fs'
import type { Pdu } from '../../src/core/event/format.ts'
import { ROOM_VERSIONS, type RoomVersion } from '../../src/core/room-version.ts'
import { eventIdOf } from '../../src/core/signing/event-hash.ts'
import { nidsOf } from '../core/state/held-events.ts'
import { SeededRandom } from '../core/state/random.ts'
import { conflictsIn, isComparable, randomRoom } from '../core/state/random-room.ts'
import type { Merge, SimulatedRoom } from '../core/state/simulated-room.ts'
import { readOracleOptions } from './options.ts'
import { Peer } from './peer.ts'

// npx tsx test/oracle/resolution-vectors.ts --python <one that has matrix-synapse> --cases 10 --seed 1
//
// Writes as vectors some small conflicts of random rooms, on which Synapse agrees: so many for each algorithm.

const FILE = new URL('../vectors/state-resolution.json', import.meta.url)
const MOST_EVENTS = 12

/** A conflict without the rest of its room: its events in order, its states by their places. */
function vectorOf(room: SimulatedRoom, { states, resolved }: Merge, clause: string) {
  const needed = new Set(states.flatMap(nidsOf))
  for (const nid of needed) for (const auth of room.graph.authOf(nid)) needed.add(auth)
  const nids = [...needed].sort((a, b) => a - b)
  const places = new Map(nids.map((nid, place) => [nid, place]))
  const placesOf = (each: readonly number[]) => each.map((nid) => places.get(nid)!).sort((a, b) => a - b)
  return {
    clause,
    version: room.version.id,
    events: nids.map((nid) => unsigned(room.at(nid).pdu)),
    states: states.map((state) => placesOf(nidsOf(state))),
    resolved: placesOf(nidsOf(resolved)),
  }
}

/** Who has signed may count, but not with which signature, not even for the event's id. */
function unsigned(pdu: Pdu): Pdu {
  return { ...pdu, signatures: Object.fromEntries(Object.keys(pdu.signatures).map((server) => [server, {}])) }
}

type Vector = ReturnType<typeof vectorOf>

/** Those of a room in which the result is none of the states, the smallest first. */
async function vectorsIn(version: RoomVersion, seed: number): Promise<Vector[]> {
  const random = new SeededRandom(seed)
  const room = await randomRoom(version, random, { attempts: 20 + random.below(20) })
  const clause = `Room version ${version.id}, State resolution (${version.stateResolution}), seed ${seed}`
  const conflicts = isComparable(room) ? await conflictsIn(room, random) : []
  return conflicts
    .filter(({ states, resolved }) => !states.includes(resolved))
    .map((conflict) => vectorOf(room, conflict, clause))
    .filter(({ events }) => events.length <= MOST_EVENTS)
    .sort((a, b) => b.resolved.length - a.resolved.length)
}

async function agrees(peer: Peer, version: RoomVersion, { events, states, resolved }: Vector): Promise<boolean> {
  const identified = events.map((pdu) => ({ id: eventIdOf(version, pdu), pdu }))
  const answers = await peer.ask({ version: version.id, events: identified, conflicts: [states] })
  return JSON.stringify(answers) === JSON.stringify([resolved])
}

async function main(): Promise<void> {
  const options = readOracleOptions(10)
  const peer = await Peer.start(options.python, 'resolution_peer.py')
  const vectors: Vector[] = []
  for (const algorithm of ['v1', 'v2', 'v2.1']) {
    const versions = ROOM_VERSIONS.filter(({ stateResolution }) => stateResolution === algorithm)
    for (let seed = options.seed, found = 0; found < options.cases; seed++) {
      const version = versions[found % versions.length]!
      const [vector] = await vectorsIn(version, seed)
      if (vector === undefined) continue
      if (!(await agrees(peer, version, vector))) throw new Error(`${peer.name} has another answer: ${vector.clause}`)
      vectors.push(vector)
      found++
    }
  }
  peer.stop()
  writeFileSync(FILE, `[\n${vectors.map((vector) => JSON.stringify(vector)).join(',\n')}\n]\n`)
  console.log(`${vectors.length} vectors; now format the file`)
}

await main()
