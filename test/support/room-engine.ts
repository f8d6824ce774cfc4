import type { Config } from '../../src/config/schema.ts'
import type { SigningKey } from '../../src/core/signing/key.ts'
import { createUserSettings } from '../../src/domain/accounts/account-services.ts'
import type { HomeserverBase } from '../../src/domain/base.ts'
import { joinNodes } from '../../src/domain/cluster/join.ts'
import { stopAll } from '../../src/domain/lifecycle.ts'
import { createMetrics } from '../../src/domain/metrics.ts'
import { OPEN_GATE } from '../../src/domain/moderation/gate.ts'
import { openPolicyLists } from '../../src/domain/moderation/policy-lists.ts'
import { NEVER_RESTORED } from '../../src/domain/restores.ts'
import { NO_IDENTITY_SERVERS } from '../../src/domain/rooms/act/identity-servers.ts'
import type { ActingServices } from '../../src/domain/rooms/acting-services.ts'
import type { FederationQueries, KeyRing } from '../../src/domain/rooms/receive/federation-queries.ts'
import type { ReceivingServices } from '../../src/domain/rooms/receiving-services.ts'
import { NO_APPSERVICES } from '../../src/domain/rooms/room/appservices-of-room.ts'
import { openRoomBase, type RoomBase } from '../../src/domain/rooms/room-base-services.ts'
import { createRoomServices } from '../../src/domain/rooms/room-services.ts'
import type { Services } from '../../src/domain/services.ts'
import { createSyncBase, type SyncBase } from '../../src/domain/sync/sync-base.ts'
import type { Peers } from '../../src/outbound/peers.ts'
import { openLedger } from '../../src/store/db/ledger.ts'
import { NO_NEWS } from './no-news.ts'
import { NOBODY_ELSEWHERE } from './nobody-elsewhere.ts'
import { ALONE } from './place.ts'

/** The real room engine over a real database, alone: others are asked by what a test gives, and told nothing. */
export interface RoomEngine
  extends Pick<RoomBase, 'registry' | 'partialStateRooms'>,
    Pick<ReceivingServices, 'receiver' | 'processJoin' | 'resync'>,
    Pick<SyncBase, 'notifier'>,
    Pick<ActingServices, 'resident'> {
  /** As endpoints know them. */
  readonly services: Pick<Services, 'rooms' | 'roomReader' | 'receipts' | 'sync' | 'slidingRequests' | 'slidingSync'>
  close(): Promise<void>
}

export async function openRoomEngine(parts: {
  readonly base: Pick<HomeserverBase, 'db' | 'users' | 'clock' | 'random' | 'log'>
  readonly config: Config
  readonly signingKey: SigningKey
  readonly serverKeys: KeyRing
  readonly peers: Peers
  readonly queries: FederationQueries
}): Promise<RoomEngine> {
  const { config, signingKey, serverKeys, peers, queries } = parts
  const { db, users, clock, random, log } = parts.base
  const ledger = await openLedger(db)
  const metrics = createMetrics({ version: '0.0.0-test', node: '' })
  const base = {
    config,
    db,
    node: await joinNodes({ db, own: ALONE, clock, log }),
    ledger,
    restores: NEVER_RESTORED,
    users,
    signingKey,
    serverKeys,
    clock,
    random,
    metrics,
    log,
  }
  const roomBase = await openRoomBase({ base })
  const syncBase = createSyncBase({
    base,
    roomBase,
    services: NO_NEWS,
    sending: { deviceListNews: NOBODY_ELSEWHERE, presenceNews: async () => {} },
  })
  const { registry, searchSignals: signals } = roomBase
  const policyLists = await openPolicyLists({ serverName: config.server_name, db, clock, log, registry, signals })
  const rooms = await createRoomServices({
    base,
    roomBase,
    moderation: { gate: OPEN_GATE, policyLists },
    syncBase,
    sending: {
      peers,
      queries,
      outgoing: { committed: () => {}, missed: () => {}, toRoom: () => {}, reaches: () => true },
    },
    newNeighbours: { committed: () => {} },
    addresses: { identityServers: NO_IDENTITY_SERVERS },
    roomAppservices: NO_APPSERVICES,
    localUsers: { profileOf: async () => ({}), isKnown: async () => true },
    settings: createUserSettings({ base, roomBase, syncBase }),
  })
  const { acting, reading, receiving, syncing } = rooms
  const { roomReader, receipts } = reading
  // What was left is gone on with once the test begins that.
  return {
    registry: roomBase.registry,
    partialStateRooms: roomBase.partialStateRooms,
    receiver: receiving.receiver,
    processJoin: receiving.processJoin,
    resync: receiving.resync,
    resident: acting.resident,
    notifier: syncBase.notifier,
    services: { rooms: acting.rooms, roomReader, receipts, sync: syncing.sync, ...syncing.sliding },
    close: () => stopAll(rooms.running, log),
  }
}
