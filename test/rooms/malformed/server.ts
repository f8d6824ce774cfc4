import { tmpdir } from 'node:os'
import { pino } from 'pino'
import { loadConfig } from '../../../src/config/load.ts'
import type { RoomId, ServerName, UserId } from '../../../src/core/ids.ts'
import type { SigningKey } from '../../../src/core/signing/key.ts'
import type { Requester } from '../../../src/domain/accounts/requester.ts'
import { type FederationQueries, type KeyRing, NOBODY } from '../../../src/domain/rooms/receive/federation-queries.ts'
import { createUsers } from '../../../src/domain/users.ts'
import { type Database, openDatabase } from '../../../src/store/db/db.ts'
import { createTestDatabase } from '../../support/database.ts'
import { KEYS, TS } from '../../support/malformed-room.ts'
import { obligingPeers } from '../../support/obliging-peers.ts'
import { openRoomEngine, type RoomEngine } from '../../support/room-engine.ts'

export const NAME = 'delta.test' as ServerName
export const WATCHER = '@watcher:delta.test' as UserId

const DAY_MS = 86_400_000

/** The keys of the servers around, none valid for longer than a week. */
export const keys: KeyRing = {
  keysOf: async (server, keyIds) =>
    Object.entries(KEYS)
      .filter(([name, { keyId }]) => name === server && keyIds.includes(keyId))
      .map(([, { keyId, publicKey }]) => ({ keyId, publicKey, validUntilTs: TS + 7 * DAY_MS })),
}

/** delta.test without HTTP: the real room engine over a real database. What others answer it is for the test to say. */
export interface WatchedServer {
  /** These change when it is restarted. */
  readonly db: Database
  readonly engine: RoomEngine
  readonly watcher: Requester
  /** What others answer to questions about a room; nobody answers where nothing is set. */
  readonly answers: Map<RoomId, Partial<FederationQueries>>
  /** Errors that were logged. */
  readonly errors: string[]
  restart(): Promise<void>
  close(): Promise<void>
}

export async function startWatchedServer(): Promise<WatchedServer> {
  const database = await createTestDatabase()
  const { config } = loadConfig({ values: { server_name: NAME, presence: { enabled: false } }, directory: tmpdir() })
  const answers = new Map<RoomId, Partial<FederationQueries>>()
  const errors: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => void errors.push(line) })
  const of = (roomId: RoomId): FederationQueries => ({ ...NOBODY, ...answers.get(roomId) })
  const queries: FederationQueries = {
    missingEvents: (server, roomId, between) => of(roomId).missingEvents(server, roomId, between),
    stateIds: (server, roomId, eventId) => of(roomId).stateIds(server, roomId, eventId),
    events: (server, roomId, eventIds) => of(roomId).events(server, roomId, eventIds),
  }

  async function open(): Promise<Pick<WatchedServer, 'db' | 'engine' | 'watcher'>> {
    const db = openDatabase({ connection: database.connection, poolSize: 4 })
    const users = createUsers({ db })
    let drawn = 0
    const engine = await openRoomEngine({
      base: {
        db,
        users,
        clock: { now: () => TS + 60_000 },
        random: { bytes: (count) => Buffer.alloc(count, `${process.hrtime.bigint()} ${++drawn}`) },
        log,
      },
      config,
      signingKey: KEYS[NAME as string as 'delta.test'],
      serverKeys: keys,
      peers: obligingPeers((server) => (KEYS as Readonly<Record<string, SigningKey>>)[server]),
      queries,
    })
    const userNid = (await users.intern([WATCHER])).get(WATCHER)!
    return {
      db,
      engine,
      watcher: { userId: WATCHER, userNid, deviceId: 'WATCHER', tokenNid: userNid, isGuest: false },
    }
  }

  let running = await open()

  async function stop(): Promise<void> {
    await running.engine.close()
    await running.db.close()
  }

  return {
    answers,
    errors,
    get db() {
      return running.db
    },
    get engine() {
      return running.engine
    },
    get watcher() {
      return running.watcher
    },
    async restart() {
      await stop()
      running = await open()
    },
    async close() {
      await stop()
      await database.drop()
    },
  }
}
