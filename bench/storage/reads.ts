import type { Database } from '../../src/store/db/db.ts'
import { getKeysAt, type StatePoint } from '../../src/store/events/state.ts'
import { latenciesOf, type Measurement, measurement } from '../measurement.ts'
import type { GrowingRoom } from './growing-room.ts'
import type { RoomDatabase } from './room-database.ts'

export interface PointIn extends StatePoint {
  readonly room_nid: number
}

const KEY_READS = 2_000

/** The points of the state before events anywhere in the rooms, from a place in their timelines on. */
export function randomPoints(
  db: Database,
  rooms: readonly GrowingRoom[],
  wanted: number,
  fromPlace = 0,
): Promise<PointIn[]> {
  return db.scan<PointIn>(
    `SELECT room_nid, state_chain AS chain, state_seq AS seq FROM event
     WHERE room_nid BETWEEN $1 AND $2 AND room_pos >= $4 ORDER BY random() LIMIT $3`,
    [rooms[0]!.nid, rooms.at(-1)!.nid, wanted, fromPlace],
  )
}

/** Reads at each point, one after another, on a connection that did nothing before. The first tenth is not counted. */
export async function timedReads(
  database: RoomDatabase,
  points: readonly PointIn[],
  read: (db: Database, point: PointIn) => Promise<unknown>,
): Promise<number[]> {
  const db = database.reopen()
  const times: number[] = []
  for (const point of points) {
    const begun = performance.now()
    await read(db, point)
    times.push(performance.now() - begun)
  }
  await db.close()
  return times.slice(Math.floor(times.length / 10))
}

/** One key anywhere in the state at a point. */
export function readKey(db: Database, point: PointIn, keys: number): Promise<unknown> {
  return getKeysAt(db, point.room_nid, point, [Math.floor(Math.random() * keys)])
}

export async function measureKeys(
  database: RoomDatabase,
  rooms: readonly GrowingRoom[],
  name: Pick<Measurement, 'benchmark' | 'variant'>,
): Promise<Measurement> {
  const points = await randomPoints(database.db, rooms, KEY_READS)
  const { keys } = rooms[0]!
  return measurement({ ...name, ...latenciesOf(await timedReads(database, points, (db, at) => readKey(db, at, keys))) })
}
