import type { RoomId, ServerName } from '../../core/ids.ts'
import type { Tx } from '../../store/db/db.ts'
import { forgetPartings } from '../../store/federation/federation-destinations.ts'
import { forgetEdus, forgetMessages } from '../../store/federation/federation-edus.ts'
import { forgetForwards } from '../../store/federation/federation-forwards.ts'
import { forgetTransactions } from '../../store/federation/federation-transactions.ts'
import { forgetKeyAnswers, forgetOldestKeyAnswers } from '../../store/federation/server-key-answers.ts'
import { forgetServerKeys } from '../../store/federation/server-keys.ts'
import type { LocalUsers } from '../accounts/local-users.ts'
import type { HomeserverBase } from '../base.ts'
import type { E2eServices } from '../e2e/e2e-services.ts'
import { createMissedDeviceLists, type MissedDeviceLists } from '../keys/missed-device-lists.ts'
import {
  EDUS_KEPT_MS,
  KEY_ANSWERS_KEPT_MS,
  MAX_KEY_ANSWERS_KEPT,
  MAX_KEY_OWNERS_KEPT,
  MESSAGES_KNOWN_MS,
  TRANSACTION_KEPT_MS,
} from '../limits.ts'
import { createGatedHandshakes } from '../moderation/gated-handshakes.ts'
import type { RoomBase } from '../rooms/room-base-services.ts'
import type { RoomServices } from '../rooms/room-services.ts'
import type { SyncBase } from '../sync/sync-base.ts'
import { createEduHandlers } from './edus.ts'
import { createHandshakes, type Handshakes } from './handshakes.ts'
import { createInvitations, type Invitations } from './invitations.ts'
import { createNotary, type Notary } from './notary.ts'
import { createRoomAnswers, type RoomAnswers } from './room-answers.ts'
import type { SendingServices } from './sending-services.ts'
import { createServerAccess, type ServerAccess } from './server-access.ts'
import { createServerQueues, type ServerQueues } from './server-queues.ts'
import { createSignedRequests, type SignedRequests } from './signed-requests.ts'
import { createSpaceAnswers, type SpaceAnswers } from './space-answers.ts'
import { createTransactions, type Transactions } from './transactions.ts'

/** Answers requests of other servers. */
export interface FederationServices {
  readonly signedRequests: SignedRequests
  readonly queues: ServerQueues
  readonly notary: Notary
  readonly roomAnswers: RoomAnswers
  readonly spaceAnswers: SpaceAnswers
  readonly handshakes: Handshakes
  readonly transactions: Transactions
  readonly missedDeviceLists: MissedDeviceLists
  readonly invitations: Invitations
  /** Whether a room's server ACL allows a server; see {@link ServerAccess.standing}. */
  standing(server: ServerName, roomId: RoomId): ReturnType<ServerAccess['standing']>
}

/** Wires the services that answer other servers. */
export function createFederationServices(parts: {
  readonly base: HomeserverBase
  readonly localUsers: Pick<LocalUsers, 'find'>
  readonly sending: Pick<SendingServices, 'outgoing'>
  readonly roomBase: Pick<
    RoomBase,
    'registry' | 'events' | 'partialStateRooms' | 'erasedUsers' | 'invitePermission' | 'lifetimes'
  >
  readonly syncBase: Pick<SyncBase, 'deviceLists' | 'presence'>
  readonly rooms: Pick<RoomServices, 'moderation' | 'acting' | 'reading' | 'receiving' | 'typing'>
  readonly e2e: Pick<E2eServices, 'receivedMessages'>
}): FederationServices {
  const { config, db, clock, log, metrics, policy, serverKeys: keys, fetcher, signingKey } = parts.base
  const { users, rateLimits, ownKeys } = parts.base
  const { localUsers } = parts
  const { outgoing } = parts.sending
  const { receivedMessages } = parts.e2e
  const { registry, events, partialStateRooms, erasedUsers, lifetimes } = parts.roomBase
  const { deviceLists, presence } = parts.syncBase
  const { receiver, pduChecks, resync } = parts.rooms.receiving
  const { resident, remoteMembers, blocks, upgrades } = parts.rooms.acting
  const { receipts } = parts.rooms.reading
  const { typing } = parts.rooms
  const { bounds } = metrics
  const { gate, policyLists: lists } = parts.rooms.moderation
  const serverName = config.server_name
  const access = createServerAccess({ db, registry, events, erasedUsers, lifetimes })
  const edus = createEduHandlers({
    registry,
    events,
    users,
    access,
    typing,
    receipts,
    receivedMessages,
    db,
    clock,
    presence,
    deviceLists,
  })
  const invitations = createInvitations({
    db,
    rateLimits,
    bounds,
    serverName,
    signingKey,
    pduChecks,
    remoteMembers,
    registry,
    access,
    blocks,
    findUser: localUsers.find,
    invitePermission: parts.roomBase.invitePermission,
    gate,
  })
  const handshakes = createHandshakes({
    serverName,
    registry,
    resident,
    receiver,
    access,
    upgrades,
    accepted: outgoing.forward,
  })
  const missedDeviceLists = createMissedDeviceLists({ db, clock, gate, lists, deviceLists })
  const transactions = createTransactions({
    db,
    clock,
    registry,
    receiver,
    partialStateRooms,
    resync,
    access,
    gate,
    invitations,
    edus,
    missedDeviceLists,
    log,
    metrics: metrics.federation,
  })
  resync.onWhole(transactions.takeHeld)
  return {
    standing: async (server, roomId) => access.standing(server, await registry.get(roomId)),
    signedRequests: createSignedRequests({ serverName, clock, bounds, keys, policy, heard: outgoing.heard }),
    queues: createServerQueues({ config }),
    notary: createNotary({ config, db, clock, signingKey, ownKeys, fetcher }),
    roomAnswers: createRoomAnswers({ db, registry, events, resident, access }),
    spaceAnswers: createSpaceAnswers({ registry, access }),
    handshakes: createGatedHandshakes(handshakes, gate),
    transactions,
    missedDeviceLists,
    invitations,
  }
}

/** Deletes expired rows of the federation. */
export const federationChores: readonly ((tx: Tx, now: number, atMost: number) => Promise<number>)[] = [
  (tx, now, atMost) => forgetTransactions(tx, now - TRANSACTION_KEPT_MS, atMost),
  (tx, now, atMost) => forgetKeyAnswers(tx, now - KEY_ANSWERS_KEPT_MS, atMost),
  (tx, _now, atMost) => forgetOldestKeyAnswers(tx, MAX_KEY_ANSWERS_KEPT, atMost),
  (tx, _now, atMost) => forgetServerKeys(tx, MAX_KEY_OWNERS_KEPT, atMost),
  (tx, now, atMost) => forgetEdus(tx, now - EDUS_KEPT_MS, atMost),
  (tx, now, atMost) => forgetForwards(tx, now - EDUS_KEPT_MS, atMost),
  (tx, now, atMost) => forgetPartings(tx, now - EDUS_KEPT_MS, atMost),
  (tx, now, atMost) => forgetMessages(tx, now - MESSAGES_KNOWN_MS, atMost),
]
