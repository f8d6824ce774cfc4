import type { RoomId, ServerName } from '../../core/ids.ts'
import { createKeyedQueue } from '../../core/keyed-queue.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { Base } from '../base.ts'
import type { Gate } from '../moderation/gate.ts'
import type { Users } from '../users.ts'
import { type Backfill, createBackfill } from './backfill/backfill.ts'
import type { FederationQueries, KeyRing } from './receive/federation-queries.ts'
import { createObjections } from './receive/objections.ts'
import { createOutliers } from './receive/outliers.ts'
import { createPduChecks, type PduChecks } from './receive/pdu-checks.ts'
import { createPlacing } from './receive/placing.ts'
import { createReceiver, type Receiver } from './receive/receive.ts'
import { startStickyReviews } from './receive/sticky-review.ts'
import { createPartialStateKicks } from './remote/partial-state-kicks.ts'
import { createProcessJoin, type ProcessJoin } from './remote/process-join.ts'
import { createResync, type Resync } from './remote/resync.ts'
import type { RoomBase } from './room-base-services.ts'
import type { WritingServices } from './writing-services.ts'

/** What receives events of other servers, pushed or fetched. */
export interface ReceivingServices {
  readonly pduChecks: PduChecks
  readonly receiver: Receiver
  readonly processJoin: ProcessJoin
  readonly backfill: Backfill
  readonly resync: Resync
}

export interface ReceivingParts {
  readonly base: Pick<Base, 'config' | 'db' | 'clock' | 'random' | 'log'> & {
    readonly users: Users
    /** Keys of other servers. */
    readonly serverKeys: KeyRing
  }
  readonly sending: {
    readonly queries: FederationQueries
    readonly peers: Peers
    readonly outgoing: { reaches(server: ServerName): boolean }
  }
  readonly notifier: { wakeRoom(roomNid: number): void }
  readonly moderation: { readonly gate: Pick<Gate, 'shuns'> }
  readonly roomBase: Pick<RoomBase, 'events' | 'registry' | 'partialStateRooms' | 'checkpoints' | 'stickyAppeals'>
  readonly writing: Pick<WritingServices, 'persister' | 'branches' | 'policies' | 'noticing'>
}

/**
 * Wires what receives events of other servers: those that they send, and those that we fetch for backfill and for rooms with partial state.
 * All share one queue for each room.
 */
export function createReceivingServices(parts: ReceivingParts): ReceivingServices {
  const { config, db, users, clock, random, log, serverKeys: keys } = parts.base
  const { queries, peers, outgoing } = parts.sending
  const { notifier } = parts
  const serverName = config.server_name
  const { events, registry, partialStateRooms, checkpoints, stickyAppeals: appeals } = parts.roomBase
  const { persister, branches, noticing } = parts.writing
  const policies = createObjections(parts.moderation.gate, parts.writing.policies)
  const roomQueue = createKeyedQueue<RoomId>()
  const pduChecks = createPduChecks({ keys })
  const outliers = createOutliers({ events, users, persister, queries, pduChecks })
  const placing = createPlacing({ serverName, users, persister, branches, policies, noticing })
  const kicks = createPartialStateKicks({ db, peers, registry, pduChecks, outliers, placing, roomQueue, log })
  const resync = createResync({
    serverName,
    db,
    random,
    log,
    peers,
    outgoing,
    users,
    registry,
    persister,
    branches,
    pduChecks,
    outliers,
    roomQueue,
    partialStateRooms,
    kicks,
    completed(room) {
      checkpoints.consider(room)
      notifier.wakeRoom(room.nid)
    },
  })
  startStickyReviews({ registry, roomQueue, persister, policies, appeals, log })
  return {
    pduChecks,
    receiver: createReceiver({
      serverName,
      db,
      events,
      registry,
      queries,
      pduChecks,
      outliers,
      placing,
      roomQueue,
      log,
    }),
    processJoin: createProcessJoin({
      serverName,
      db,
      events,
      registry,
      queries,
      pduChecks,
      outliers,
      placing,
      roomQueue,
      partialStateRooms,
      resync: resync.begin,
    }),
    backfill: createBackfill({
      serverName,
      db,
      clock,
      log,
      events,
      registry,
      queries,
      pduChecks,
      outliers,
      placing,
      roomQueue,
      branches,
      checkpoints,
      peers,
    }),
    resync,
  }
}
