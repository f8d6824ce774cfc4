import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClientConfig } from 'pg'
import { pino } from 'pino'
import { checkpointInterval } from '../../src/domain/rooms/room/checkpoints.ts'
import { type Database, openDatabase } from '../../src/store/db/db.ts'
import { migrate } from '../../src/store/db/migrate.ts'
import { startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts'
import { writeEventBatch } from '../../src/store/events/event-batch.ts'
import { saveCheckpoint } from '../../src/store/events/state.ts'
import { takePlace } from '../../test/support/place.ts'
import { PROJECT_ROOT } from '../../test/support/project.ts'
import { batchOf, GrowingRoom, type Mix } from './growing-room.ts'

const STATE_TABLES = ['state_change', 'state_key', 'state_chain', 'state_checkpoint']
const ALL_TABLES = [...STATE_TABLES, 'room', 'event', 'client_txn']
const EVENTS_PER_COMMIT = 256

export interface Sizes {
  readonly state: number
  readonly event: number
  readonly all: number
}

/** The Postgres that the server itself would start, migrated, with nothing in it. */
export interface RoomDatabase {
  readonly db: Database
  /** Grows rooms side by side until each has so many events. Gives them and the seconds it took. */
  grow(
    rooms: number,
    eventsEach: number,
    mix: Mix,
  ): Promise<{ readonly rooms: GrowingRoom[]; readonly seconds: number }>
  /** Bytes on disk, indexes and all, once Postgres has tidied up. */
  sizes(): Promise<Sizes>
  /** Another connection, which knows of nothing that was read before. */
  reopen(): Database
  empty(): Promise<void>
  remove(): Promise<void>
}

export async function openRoomDatabase(): Promise<RoomDatabase> {
  const parent = await mkdtemp(join(tmpdir(), 'hearth-storage-'))
  const log = pino({ level: 'silent' })
  const directory = join(parent, 'postgres')
  const { connection, stop } = await startEmbeddedPostgres({ directory, uid: process.getuid?.() ?? 1, log })
  const open = () => openDatabase({ connection, poolSize: 2 })
  const db = open()
  const remove = async () => {
    await db.close()
    await stop()
    await rm(parent, { recursive: true, force: true })
  }
  await prepare(db, connection).catch(async (error: unknown) => {
    await remove()
    throw error
  })
  const place = await takePlace(db)
  let lastNid = 0
  let lastRoom = 0
  return {
    db,
    async grow(count, eventsEach, mix) {
      const rooms = Array.from({ length: count }, () => new GrowingRoom(++lastRoom, mix, () => ++lastNid))
      const begun = performance.now()
      for (let made = 0, each: number; made < eventsEach; made += each) {
        each = Math.min(Math.max(1, Math.floor(EVENTS_PER_COMMIT / count)), eventsEach - made)
        for (let n = 0; n < each; n++) for (const room of rooms) room.step()
        const { advanced } = await writeEventBatch(db, batchOf(rooms), place)
        if (advanced.size !== count) throw new Error(`${count - advanced.size} rooms were not written`)
        for (const room of rooms) await checkpoint(db, room)
      }
      return { rooms, seconds: (performance.now() - begun) / 1000 }
    },
    async sizes() {
      await db.scan('VACUUM (ANALYZE)')
      const rows = await db.query<{ name: string; bytes: number }>(
        'SELECT name, pg_total_relation_size(name::regclass) AS bytes FROM unnest($1::text[]) AS name',
        [ALL_TABLES],
      )
      const sum = (tables: readonly string[]) =>
        rows.reduce((total, { name, bytes }) => total + (tables.includes(name) ? bytes : 0), 0)
      return { state: sum(STATE_TABLES), event: sum(['event']), all: sum(ALL_TABLES) }
    },
    reopen: open,
    async empty() {
      // Tables that refer to these are empty: the benchmark writes none of their rows.
      await db.query(`TRUNCATE ${ALL_TABLES.join(', ')} CASCADE`)
    },
    remove,
  }
}

async function prepare(db: Database, connection: ClientConfig): Promise<void> {
  await migrate(connection, join(PROJECT_ROOT, 'migrations'))
  const [{ fsync } = { fsync: '' }] = await db.query<{ fsync: string }>("SELECT current_setting('fsync') AS fsync")
  if (fsync !== 'on') throw new Error('fsync is off: not measuring a database that may forget')
}

/** As the server does after each commit. */
async function checkpoint(db: Database, room: GrowingRoom): Promise<void> {
  if (room.seq - room.checkpointSeq < checkpointInterval(room.state)) return
  room.checkpointSeq = room.seq
  await db.tx((tx) => saveCheckpoint(tx, room.nid, room.point, room.state))
}
