import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { RoomId, ServerName, UserId } from '../../core/ids.ts'
import type { ServerPolicy } from '../../core/server-policy.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { KeyFetcher } from '../../outbound/server-keys.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import { forgetPartings } from '../../store/federation/federation-destinations.ts'
import { forgetEdus, forgetMessages } from '../../store/federation/federation-edus.ts'
import { forgetForwards } from '../../store/federation/federation-forwards.ts'
import { forgetTransactions } from '../../store/federation/federation-transactions.ts'
import { forgetKeyAnswers, forgetOldestKeyAnswers } from '../../store/federation/server-key-answers.ts'
import { forgetServerKeys } from '../../store/federation/server-keys.ts'
import type { BoundMetrics } from '../bound-metrics.ts'
import type { Clock } from '../clock.ts'
import type { ReceivedMessages } from '../e2e/received-messages.ts'
import type { DeviceLists } from '../keys/device-lists.ts'
import {
  EDUS_KEPT_MS,
  KEY_ANSWERS_KEPT_MS,
  MAX_KEY_ANSWERS_KEPT,
  MAX_KEY_OWNERS_KEPT,
  MESSAGES_KNOWN_MS,
  TRANSACTION_KEPT_MS,
} from '../limits.ts'
import type { RateLimits } from '../rate-limits.ts'
import type { ErasedUsers } from '../rooms/read/erased-users.ts'
import type { Receipts } from '../rooms/read/receipts.ts'
import type { Typing } from '../rooms/read/typing.ts'
import type { PduChecks } from '../rooms/receive/pdu-checks.ts'
import type { Receiver } from '../rooms/receive/receive.ts'
import type { RemoteMembers } from '../rooms/remote/remote-members.ts'
import type { Resident } from '../rooms/remote/resident.ts'
import type { Resync } from '../rooms/remote/resync.ts'
import type { RoomBlocks } from '../rooms/room/blocks.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { PartialStateRooms } from '../rooms/room/partial-state-rooms.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Presence } from '../sync/presence.ts'
import type { Users } from '../users.ts'
import { createEduHandlers } from './edus.ts'
import { createHandshakes, type Handshakes } from './handshakes.ts'
import { createInvitations, type Invitations } from './invitations.ts'
import type { ServerKeyRing } from './key-ring.ts'
import { createNotary, type Notary } from './notary.ts'
import type { Outgoing } from './outgoing.ts'
import type { OwnKeys } from './own-keys.ts'
import { createRoomAnswers, type RoomAnswers } from './room-answers.ts'
import { createServerAccess, type ServerAccess } from './server-access.ts'
import { createServerQueues, type ServerQueues } from './server-queues.ts'
import { createSignedRequests, type SignedRequests } from './signed-requests.ts'
import { createSpaceAnswers, type SpaceAnswers } from './space-answers.ts'
import { createTransactions, type Transactions } from './transactions.ts'

/** What other servers ask of this one. */
export interface FederationServices {
  readonly signedRequests: SignedRequests
  readonly queues: ServerQueues
  readonly notary: Notary
  readonly roomAnswers: RoomAnswers
  readonly spaceAnswers: SpaceAnswers
  readonly handshakes: Handshakes
  readonly transactions: Transactions
  readonly invitations: Invitations
  /** How the access list of a room stands to a server; see {@link ServerAccess.standing}. */
  standing(server: ServerName, roomId: RoomId): ReturnType<ServerAccess['standing']>
}

/** Wires what answers other servers. */
export function createFederationServices(deps: {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly keys: ServerKeyRing
  readonly policy: ServerPolicy
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly resident: Resident
  readonly receiver: Receiver
  readonly partialStateRooms: PartialStateRooms
  readonly resync: Resync
  readonly erasedUsers: ErasedUsers
  readonly blocks: RoomBlocks
  readonly users: Users
  readonly typing: Typing
  readonly receipts: Receipts
  readonly receivedMessages: ReceivedMessages
  readonly deviceLists: DeviceLists
  readonly presence: Presence
  readonly signingKey: SigningKey
  readonly pduChecks: PduChecks
  readonly remoteMembers: RemoteMembers
  /** The number of a user of ours who may be invited. */
  findUser(userId: UserId): Promise<number | undefined>
  readonly log: Logger
  readonly rateLimits: RateLimits
  readonly bounds: BoundMetrics
  readonly outgoing: Outgoing
  readonly ownKeys: OwnKeys
  readonly fetcher: Pick<KeyFetcher, 'own'>
}): FederationServices {
  const serverName = deps.config.server_name
  const access = createServerAccess(deps)
  const edus = createEduHandlers({ ...deps, access })
  const invitations = createInvitations({ ...deps, serverName, access })
  return {
    standing: async (server, roomId) => access.standing(server, await deps.registry.get(roomId)),
    signedRequests: createSignedRequests({ ...deps, serverName, heard: deps.outgoing.heard }),
    queues: createServerQueues(deps),
    notary: createNotary(deps),
    roomAnswers: createRoomAnswers({ ...deps, access }),
    spaceAnswers: createSpaceAnswers({ ...deps, access }),
    handshakes: createHandshakes({ ...deps, serverName, access, accepted: deps.outgoing.forward }),
    transactions: createTransactions({ ...deps, access, invitations, edus }),
    invitations,
  }
}

/** What of the federation's rows is due for removal at a moment. */
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
