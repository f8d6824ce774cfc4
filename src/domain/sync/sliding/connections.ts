import type { ByteBudget } from '../../../core/byte-budget.ts'
import { createKeyedQueue } from '../../../core/keyed-queue.ts'
import {
  type ConnectionKey,
  deleteUnusedConnections,
  findConnection,
  putConnection,
  touchConnection,
} from '../../../store/accounts/sliding-connections.ts'
import type { Database } from '../../../store/db/db.ts'
import type { Clock } from '../../clock.ts'
import { CONNECTION_UNUSED_MS, MAX_CONNECTIONS_PER_DEVICE } from '../../limits/sliding-sync.ts'
import { readRecord, recordBytes, type SlidingRecord, writeRecord } from './record.ts'

/** What clients of sliding sync were sent. A connection that was sent no room has no record, and never ends. */
export interface Connections {
  /** The record of a client that was sent no room. */
  begin(): SlidingRecord
  /** What the client had been sent at a version; undefined if that is no longer, or never was, kept. */
  at(key: ConnectionKey, version: number): SlidingRecord | undefined | Promise<SlidingRecord | undefined>
  /** Keeps what a new answer adds to `base`, before it is sent. Returns the record with its version. */
  advance(key: ConnectionKey, base: SlidingRecord, rooms: SlidingRecord['rooms']): Promise<SlidingRecord>
}

/** The records of the newest answer and of the one that it followed. */
interface Connection {
  readonly newest: SlidingRecord
  readonly base: SlidingRecord | undefined
  /** When the database was last told that it is in use. */
  readonly usedAt: number
}

/** How exactly the database knows when a connection was last used. */
const USED_EVERY_MS = 86_400_000
const SWEEP_EVERY_MS = 3_600_000
const SWEPT_AT_ONCE = 1_000
/** A sweep that took so long goes on with the next connection that is written. */
const SWEEP_AT_MOST_MS = 10_000

export function createConnections(parts: {
  readonly db: Database
  readonly clock: Clock
  readonly budget: ByteBudget
}): Connections {
  const { db, clock } = parts
  /** A connection is weighed at each use, and its records do not change. */
  const weights = new WeakMap<SlidingRecord['rooms'], number>()
  const weightOf = (record: SlidingRecord): number => {
    const weight = weights.get(record.rooms) ?? recordBytes(record)
    weights.set(record.rooms, weight)
    return weight
  }
  const known = parts.budget.part<string, Connection>({
    bytesOf: ({ newest, base }) => weightOf(newest) + (base ? weightOf(base) : 0),
  })
  /** The answers of one connection are written one after another. */
  const turns = createKeyedQueue<string>()
  let sweptAt = clock.now()
  let isSweeping = false
  /** Below all versions. */
  let lineages = 0

  const begin = (): SlidingRecord => ({ version: 0, rooms: new Map(), lineage: --lineages })

  const nameOf = ({ userNid, deviceId, connId }: ConnectionKey) => `${userNid} ${deviceId} ${connId}`

  async function load(key: ConnectionKey): Promise<Connection | undefined> {
    const row = await findConnection(db, key)
    if (row === undefined) return undefined
    const { version, record, base_version: baseVersion, base_record: baseRecord, used_at: usedAt } = row
    const base = baseVersion === null || baseRecord === null ? undefined : readRecord(baseVersion, baseRecord)
    return { newest: readRecord(version, record), base, usedAt }
  }

  /** Connections that were unused for long go, when others are written: some at a time, so that no write waits for them. */
  async function sweep(now: number): Promise<void> {
    if (isSweeping || now - sweptAt < SWEEP_EVERY_MS) return
    isSweeping = true
    try {
      const begun = clock.now()
      let swept = SWEPT_AT_ONCE
      while (swept === SWEPT_AT_ONCE && clock.now() - begun < SWEEP_AT_MOST_MS) {
        const gone = await db.tx((tx) => deleteUnusedConnections(tx, now - CONNECTION_UNUSED_MS, SWEPT_AT_ONCE))
        for (const key of gone) known.delete(nameOf(key))
        swept = gone.length
      }
      if (swept < SWEPT_AT_ONCE) sweptAt = now
    } finally {
      isSweeping = false
    }
  }

  async function use(key: ConnectionKey, name: string, connection: Connection): Promise<void> {
    const now = clock.now()
    known.set(name, { ...connection, usedAt: now })
    await db.tx((tx) => touchConnection(tx, key, now))
  }

  function recordAt(
    key: ConnectionKey,
    version: number,
    connection: Connection | undefined,
  ): SlidingRecord | undefined {
    if (connection === undefined) return undefined
    const { newest, base } = connection
    const name = nameOf(key)
    // The client has the newest answer, so it asks for nothing before it.
    if (newest.version === version && base) known.set(name, { ...connection, base: undefined })
    if (clock.now() - connection.usedAt > USED_EVERY_MS) use(key, name, connection).catch(() => {})
    if (newest.version === version) return newest
    // The answer after it was lost, with all that it held.
    return base?.version === version ? { ...base, lineage: --lineages } : undefined
  }

  return {
    begin,

    at(key, version) {
      if (version === 0) return begin()
      const name = nameOf(key)
      const connection = known.get(name)
      if (connection) return recordAt(key, version, connection)
      return load(key).then((loaded) => {
        if (loaded && !known.get(name)) known.set(name, loaded)
        return recordAt(key, version, known.get(name))
      })
    },

    advance(key, base, rooms) {
      const name = nameOf(key)
      return turns.run(name, async () => {
        const now = clock.now()
        const version = Math.max(known.get(name)?.newest.version ?? 0, base.version, now) + 1
        const newest: SlidingRecord = { version, rooms, lineage: base.lineage }
        const answer = { base: base.version, version, record: writeRecord(newest), usedAt: now }
        const gone = await db.tx((tx) => putConnection(tx, key, { ...answer, most: MAX_CONNECTIONS_PER_DEVICE }))
        for (const connId of gone) known.delete(nameOf({ ...key, connId }))
        known.set(name, { newest, base: base.version === 0 ? undefined : base, usedAt: now })
        sweep(now).catch(() => {})
        return newest
      })
    },
  }
}
