import { EMPTY_STATE, type StateMap, setState } from '../../src/core/state/trie.ts'
import type { Database } from '../../src/store/db.ts'
import { getKeysAt, loadState, type StatePoint } from '../../src/store/state.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import type { GrowingRoom, Mix, Shape } from '../storage/growing-room.ts'
import { openRoomDatabase, type RoomDatabase } from '../storage/room-database.ts'

export const BENCHMARK = 'storage'

const SHAPES: readonly Shape[] = ['linear', 'forked']
const LENGTHS = [1_000, 10_000, 100_000]
const EVENTS = Math.max(...LENGTHS)
/** Of ten state changes so many set a key that was never set: most are people who come. */
const NEW_KEYS_OF_TEN = 6
const LARGE_STATE = 50_000
const KEY_READS = 2_000
const STATE_READS = 200
const DERIVED = 200_000

/** What the store itself can do, without the server around it; that of others cannot be measured from outside. */
export async function measureStorage(options: BenchOptions): Promise<Measurement[]> {
  if (options.url !== undefined) return []
  const database = await openRoomDatabase()
  try {
    const measured: Measurement[] = []
    for (const length of LENGTHS) measured.push(await measureMessages(database, length))
    for (const shape of SHAPES) {
      for (const length of LENGTHS) measured.push(...(await measureGrowth(database, shape, length)))
    }
    for (const shape of SHAPES) measured.push(...(await measureLargeState(database, shape)))
    return [...measured, measureDerivation()]
  } finally {
    await database.remove()
  }
}

const count = (number: number) => number.toLocaleString('en')
const bytes = (number: number) => `${count(Math.round(number))} B`

async function measureMessages(database: RoomDatabase, length: number): Promise<Measurement> {
  await database.empty()
  const before = await database.sizes()
  const mix: Mix = { shape: 'linear', isMessage: () => true, setsNewKey: () => false }
  const { seconds } = await database.grow(EVENTS / length, length, mix)
  const after = await database.sizes()
  return measurement({
    benchmark: BENCHMARK,
    variant: `message, rooms of ${count(length)} events`,
    perSecond: EVENTS / seconds,
    diskBytesPerOperation: (after.all - before.all) / EVENTS,
    note: 'everything, its transaction id among it',
  })
}

async function measureGrowth(database: RoomDatabase, shape: Shape, length: number): Promise<Measurement[]> {
  await database.empty()
  const mix: Mix = {
    shape,
    isMessage: (place) =>
      shape === 'linear' ? place % 2 === 0 : place === 0 || place === 2 || place === 4 || place === 9,
    setsNewKey: (_keys, change) => change % 10 < NEW_KEYS_OF_TEN,
  }
  const before = await database.sizes()
  const { rooms, seconds } = await database.grow(EVENTS / length, length, mix)
  const after = await database.sizes()
  const changes = rooms.reduce((sum, { stateEvents }) => sum + stateEvents, 0)
  const eventBytes = (after.event - before.event) / EVENTS
  return [
    measurement({
      benchmark: BENCHMARK,
      variant: `state change, ${shape} rooms of ${count(length)} events`,
      perSecond: EVENTS / seconds,
      diskBytesPerOperation: (after.state - before.state) / changes,
      note: `state tables alone; an event row is ${bytes(eventBytes)} more. Of the events, ${Math.round((100 * changes) / EVENTS)}% change state`,
    }),
    await measureKeys(database, rooms, `one state key, ${shape} rooms of ${count(length)} events`),
  ]
}

/** The state before events anywhere in the rooms. */
async function randomEvents(db: Database, rooms: readonly GrowingRoom[], wanted: number, leastSeq = 0) {
  const [first, last] = [rooms[0]!.nid, rooms.at(-1)!.nid]
  return db.scan<StatePoint & { readonly room_nid: number }>(
    `SELECT room_nid, state_chain AS chain, state_seq AS seq FROM event WHERE room_nid BETWEEN $1 AND $2
     AND (state_seq >= $4 OR (state_chain > 0 AND room_pos >= 2 * $4)) ORDER BY random() LIMIT $3`,
    [first, last, wanted, leastSeq],
  )
}

async function measureKeys(
  database: RoomDatabase,
  rooms: readonly GrowingRoom[],
  variant: string,
): Promise<Measurement> {
  const db = database.reopen()
  const events = await randomEvents(db, rooms, KEY_READS)
  const keys = rooms[0]!.keys
  const times: number[] = []
  for (const { room_nid, chain, seq } of events) {
    const keyId = Math.floor(Math.random() * keys)
    const begun = performance.now()
    await getKeysAt(db, room_nid, { chain, seq }, [keyId])
    times.push(performance.now() - begun)
  }
  await db.close()
  return measurement({ benchmark: BENCHMARK, variant, ...latenciesOf(times.slice(times.length / 10)) })
}

/** A room of 50,000 people who came, and then as many changes of what they are called. */
async function measureLargeState(database: RoomDatabase, shape: Shape): Promise<Measurement[]> {
  await database.empty()
  const mix: Mix = {
    shape,
    isMessage: (place) => shape === 'forked' && place === 9,
    setsNewKey: (keys) => keys < LARGE_STATE,
  }
  const { rooms } = await database.grow(1, 2 * LARGE_STATE + 20_000, mix)
  await database.sizes()
  const db = database.reopen()
  const times: number[] = []
  for (const { room_nid, chain, seq } of await randomEvents(db, rooms, STATE_READS, LARGE_STATE)) {
    const begun = performance.now()
    const state = await loadState(db, room_nid, { chain, seq })
    times.push(performance.now() - begun)
    if (state.size !== LARGE_STATE) throw new Error(`a state of ${state.size} entries at ${chain}, ${seq}`)
  }
  await db.close()
  const name = `state of ${count(LARGE_STATE)}, ${shape} room`
  return [
    measurement({
      benchmark: BENCHMARK,
      variant: `full ${name}`,
      ...latenciesOf(times),
      note: 'none of it in memory before',
    }),
    await measureKeys(database, rooms, `one key of a ${name}`),
  ]
}

/** Makes 200,000 states, each from the one before by a change. */
function measureDerivation(): Measurement {
  let state: StateMap = EMPTY_STATE
  for (let key = 0; key < LARGE_STATE; key++) state = setState(state, key, key + 1)
  const begun = performance.now()
  for (let round = 0; round < DERIVED; round++)
    state = setState(state, (round * 7_919) % LARGE_STATE, LARGE_STATE + round + 1)
  const microseconds = ((performance.now() - begun) * 1_000) / DERIVED
  return measurement({
    benchmark: BENCHMARK,
    variant: `state of ${count(LARGE_STATE)} derived from another`,
    perSecond: 1e6 / microseconds,
    note: `${microseconds.toFixed(2)} us each`,
  })
}
