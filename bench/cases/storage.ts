import { type Measurement, measurement } from '../measurement.ts'
import type { BenchOptions } from '../options.ts'
import type { Mix, Shape } from '../storage/growing-room.ts'
import { measureKeys } from '../storage/reads.ts'
import { openRoomDatabase, type RoomDatabase } from '../storage/room-database.ts'

export const BENCHMARK = 'storage'

const SHAPES: readonly Shape[] = ['linear', 'forked', 'tangled']
const LENGTHS = [1_000, 10_000, 100_000]
const EVENTS = Math.max(...LENGTHS)
/** Of ten state changes so many set a key that was never set: most are people who come. */
const NEW_KEYS_OF_TEN = 6
/** Of ten events in a row, the places of messages. */
const MESSAGES = [0, 2, 4, 9]

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
    return measured
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
    isMessage: (place) => MESSAGES.includes(place),
    setsNewKey: (_keys, change) => change % 10 < NEW_KEYS_OF_TEN,
  }
  const before = await database.sizes()
  const { rooms, seconds } = await database.grow(EVENTS / length, length, mix)
  const after = await database.sizes()
  const stateEvents = rooms.reduce((sum, room) => sum + room.stateEvents, 0)
  const changes = rooms.reduce((sum, room) => sum + room.changes, 0)
  const stateBytes = after.state - before.state
  const eventBytes = (after.event - before.event) / EVENTS
  return [
    measurement({
      benchmark: BENCHMARK,
      variant: `state change, ${shape} rooms of ${count(length)} events`,
      perSecond: EVENTS / seconds,
      diskBytesPerOperation: stateBytes / changes,
      note: `the state log; ${(changes / stateEvents).toFixed(2)} changes and ${bytes(stateBytes / stateEvents)} per state event, whose row is ${bytes(eventBytes)} more`,
    }),
    await measureKeys(database, rooms, {
      benchmark: BENCHMARK,
      variant: `one state key at an event, ${shape} rooms of ${count(length)} events`,
    }),
  ]
}
