import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { pino } from 'pino'
import { loadConfig } from '../../src/config/load.ts'
import type { ServerName, UserId } from '../../src/core/ids.ts'
import { type SigningKey, signingKeyFromSeed } from '../../src/core/signing/key.ts'
import type { Requester } from '../../src/domain/accounts/requester.ts'
import type { KeyRing } from '../../src/domain/rooms/receive/federation-queries.ts'
import { createUsers, type Users } from '../../src/domain/users.ts'
import type { Peers } from '../../src/outbound/peers.ts'
import { type Database, openDatabase } from '../../src/store/db/db.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { obligingPeers } from '../support/obliging-peers.ts'
import { openRoomEngine, type RoomEngine } from '../support/room-engine.ts'
import { questionsOf, seededRandom, virtualClock } from './world.ts'

/** A homeserver without HTTP: the real room engine over a real database, in a world of its own. */
export interface SimulatedServer {
  readonly name: ServerName
  readonly signingKey: SigningKey
  /** What it asks of others besides what the run answers: for a test to fill in. */
  readonly peers: Peers
  readonly connection: TestDatabase['connection']
  /** These change when it is restarted. */
  readonly db: Database
  readonly engine: RoomEngine
  as(userId: UserId): Promise<Requester>
  /** From here on rooms that are joined without their members are filled with them. */
  startResync(): void
  /** Starts it again on its database: what was only in memory is gone. */
  restart(): Promise<void>
  close(): Promise<void>
}

const KEY_ID = 'ed25519:sim'

const known = new Map<string, SigningKey>()

function keyOf(server: string): SigningKey {
  const key = known.get(server) ?? signingKeyFromSeed(KEY_ID, createHash('sha256').update(server).digest())
  known.set(server, key)
  return key
}

/** Everybody's keys are a function of the name. */
const keys: KeyRing = {
  keysOf: async (server, keyIds) =>
    keyIds.includes(KEY_ID)
      ? [{ keyId: KEY_ID, publicKey: keyOf(server).publicKey, validUntilTs: Number.MAX_SAFE_INTEGER }]
      : [],
}

export async function startSimulatedServer(serverName: string): Promise<SimulatedServer> {
  const name = serverName as ServerName
  const database = await createTestDatabase()
  const { config } = loadConfig({ values: { server_name: name, presence: { enabled: false } }, directory: tmpdir() })
  const signingKey = keyOf(name)
  const log = pino({ level: 'error' })
  const peers = obligingPeers(keyOf)

  async function open(): Promise<{ db: Database; users: Users; engine: RoomEngine }> {
    const db = openDatabase({ connection: database.connection, poolSize: 4 })
    const users = createUsers({ db })
    const engine = await openRoomEngine({
      base: { db, users, clock: virtualClock, random: seededRandom, log },
      config,
      signingKey,
      serverKeys: keys,
      peers,
      queries: questionsOf(name),
    })
    return { db, users, engine }
  }

  let running = await open()
  let isResyncing = false

  async function stop(): Promise<void> {
    await running.engine.close()
    await running.db.close()
  }

  return {
    name,
    signingKey,
    peers,
    connection: database.connection,
    get db() {
      return running.db
    },
    get engine() {
      return running.engine
    },
    async as(userId) {
      const userNid = (await running.users.intern([userId])).get(userId)!
      return { userId, userNid, deviceId: 'SIMULATED', tokenNid: userNid, isGuest: false }
    },
    startResync() {
      if (isResyncing) return
      isResyncing = true
      const { resync, partialStateRooms } = running.engine
      resync.onWhole(async (partialState) => partialStateRooms.end(partialState))
      resync.start()
    },
    async restart() {
      await stop()
      isResyncing = false
      running = await open()
    },
    async close() {
      await stop()
      await database.drop()
    },
  }
}
