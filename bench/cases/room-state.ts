import { EMPTY_STATE, type StateMap, setState } from '../../src/core/state/trie.ts'
import type { Database, Tx } from '../../src/store/db/db.ts'
import { loadState } from '../../src/store/events/state.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import type { GrowingRoom, Mix, Shape } from '../storage/growing-room.ts'
import { measureKeys, type PointIn, randomPoints, readKey, timedReads } from '../storage/reads.ts'
import { openRoomDatabase, type RoomDatabase } from '../storage/room-database.ts'

export const BENCHMARK = 'room-state'

const SHAPES: readonly Shape[] = ['linear', 'forked', 'tangled']
const ENTRIES = 50_000
/** All have come by this place in the timeline; what follows sets their keys again. */
const ALL_HERE = 60_000
const EVENTS = 120_000
const DEPTHS = [20, 200]
const STATE_READS = 200
const KEY_READS = 1_000
const DERIVED = 200_000
const STATE = `state of ${ENTRIES.toLocaleString('en')}`

/** What reading the past of a large room takes of the store itself; that of others cannot be measured from outside. */
export async function measureRoomState(options: BenchOptions): Promise<Measurement[]> {
  if (options.url !== undefined) return []
  const database = await openRoomDatabase()
  try {
    const measured = [measureDerivation()]
    for (const shape of SHAPES) {
      const room = await growLarge(database, shape)
      measured.push(await measureFull(database, room, shape))
      measured.push(
        await measureKeys(database, [room], { benchmark: BENCHMARK, variant: `one key of a ${STATE}, ${shape} room` }),
      )
      if (shape === 'tangled') for (const depth of DEPTHS) measured.push(...(await measureDepth(database, room, depth)))
    }
    return measured
  } finally {
    await database.remove()
  }
}

async function growLarge(database: RoomDatabase, shape: Shape): Promise<GrowingRoom> {
  await database.empty()
  const mix: Mix = { shape, isMessage: (place) => place === 9, setsNewKey: (keys) => keys < ENTRIES }
  const { rooms } = await database.grow(1, EVENTS, mix)
  await database.sizes()
  return rooms[0]!
}

async function readFull(db: Database, point: PointIn): Promise<void> {
  const { size } = await loadState(db, point.room_nid, point)
  if (size !== ENTRIES) throw new Error(`a state of ${size} entries at ${point.chain}, ${point.seq}`)
}

async function measureFull(database: RoomDatabase, room: GrowingRoom, shape: Shape): Promise<Measurement> {
  const points = await randomPoints(database.db, [room], STATE_READS, ALL_HERE)
  return measurement({
    benchmark: BENCHMARK,
    variant: `full ${STATE}, ${shape} room`,
    ...latenciesOf(await timedReads(database, points, readFull)),
    note: 'at any event, nothing of it in memory before',
  })
}

/** Branches off branches, as deep as no checkpoint would let them become where the room stands. */
async function measureDepth(database: RoomDatabase, room: GrowingRoom, depth: number): Promise<Measurement[]> {
  await database.db.tx((tx) => branchOff(tx, room, depth))
  const points = Array.from({ length: KEY_READS }, () => ({
    room_nid: room.nid,
    chain: firstOf(depth) + depth,
    seq: 2,
  }))
  const keys = await timedReads(database, points, (db, point) => readKey(db, point, ENTRIES))
  const full = await timedReads(database, points.slice(0, STATE_READS), readFull)
  const suffix = `${depth} branches deep`
  return [
    measurement({ benchmark: BENCHMARK, variant: `full ${STATE}, ${suffix}`, ...latenciesOf(full) }),
    measurement({ benchmark: BENCHMARK, variant: `one key of a ${STATE}, ${suffix}`, ...latenciesOf(keys) }),
  ]
}

/** Numbers beyond those of the room's own chains. */
const firstOf = (depth: number) => depth * 1_000_000

/** Chains of three changes, each branching off the second change of the one before. */
async function branchOff(tx: Tx, { nid, seq }: GrowingRoom, depth: number): Promise<void> {
  await tx.query(
    `INSERT INTO state_chain SELECT $1, $4::int + n, CASE WHEN n = 1 THEN 0 ELSE $4::int + n - 1 END, CASE WHEN n = 1 THEN $2::int ELSE 2 END
     FROM generate_series(1, $3::int) n`,
    [nid, seq, depth, firstOf(depth)],
  )
  await tx.query(
    `INSERT INTO state_change SELECT $1, $3::int + n, s, n * 3 + s, 1 FROM generate_series(1, $2::int) n, generate_series(1, 3) s`,
    [nid, depth, firstOf(depth)],
  )
}

/** Makes states, each from the one before by a change. */
function measureDerivation(): Measurement {
  let state: StateMap = EMPTY_STATE
  for (let key = 0; key < ENTRIES; key++) state = setState(state, key, key + 1)
  const begun = performance.now()
  for (let round = 0; round < DERIVED; round++) state = setState(state, (round * 7_919) % ENTRIES, ENTRIES + round + 1)
  const microseconds = ((performance.now() - begun) * 1_000) / DERIVED
  return measurement({
    benchmark: BENCHMARK,
    variant: `${STATE} derived from another`,
    perSecond: 1e6 / microseconds,
    note: `${microseconds.toFixed(2)} us each`,
  })
}
