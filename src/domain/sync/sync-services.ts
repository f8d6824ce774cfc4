import type { Database } from '../../store/db/db.ts'
import type { Ledger } from '../../store/db/ledger.ts'
import type { Clock } from '../clock.ts'
import type { SyncMetrics } from '../measures/work-metrics.ts'
import type { ThreadSubscriptions } from '../push/thread-subscriptions.ts'
import type { Restores } from '../restores.ts'
import { createBundleAggregations } from '../rooms/read/bundles.ts'
import type { RoomDirectory } from '../rooms/read/directory.ts'
import type { RoomReader } from '../rooms/read/reader.ts'
import type { Receipts } from '../rooms/read/receipts.ts'
import { createKeepRelated } from '../rooms/read/related.ts'
import { createSharedBundles } from '../rooms/read/shared-bundles.ts'
import type { Typing } from '../rooms/read/typing.ts'
import type { RoomAccess } from '../rooms/room/room-access.ts'
import type { RoomBase } from '../rooms/room-base-services.ts'
import type { Users } from '../users.ts'
import { createAwaitNews } from './await-news.ts'
import { createAnswerPlaces } from './first/answer-places.ts'
import { createFirstReadings } from './first/readings.ts'
import { createKeyChanges, type KeyChanges } from './key-changes.ts'
import { createLazyMembers } from './lazy-members.ts'
import { createEventStream, type EventStream } from './peek/event-stream.ts'
import { createRoomSnapshots, type RoomSnapshots } from './peek/room-snapshots.ts'
import { createRoomStates } from './room-state.ts'
import { createSentAnswers } from './sent-answers.ts'
import { createSharedStretches, createSharedTexts } from './shared-stretches.ts'
import { createSlidingServices, type SlidingServices } from './sliding/sliding-services.ts'
import type { SyncSources } from './sources.ts'
import { createSync, type Sync } from './sync.ts'
import type { SyncBase } from './sync-base.ts'
import { createTokenOf, type StreamPosition } from './token.ts'

export interface SyncServices {
  readonly sliding: SlidingServices
  readonly sync: Sync
  readonly keyChanges: KeyChanges
  readonly eventStream: EventStream
  readonly roomSnapshots: RoomSnapshots
  /** The current position of every stream. */
  now(): StreamPosition
}

export interface SyncServiceParts {
  readonly db: Database
  readonly ledger: Ledger
  readonly clock: Clock
  readonly restores: Restores
  readonly metrics: SyncMetrics
  readonly users: Users
  readonly roomBase: RoomBase
  readonly syncBase: SyncBase
  readonly access: RoomAccess
  readonly typing: Typing
  readonly receipts: Receipts
  readonly threadSubscriptions: ThreadSubscriptions
  readonly roomReader: Pick<RoomReader, 'event' | 'recent' | 'state'>
  readonly directory: Pick<RoomDirectory, 'visibilityOf'>
  /** The newest committed position of the event stream. */
  position(): number
}

export function createSyncServices(parts: SyncServiceParts): SyncServices {
  const { ledger, clock, restores, metrics, roomReader, directory, position } = parts
  const { userRooms } = parts.roomBase
  const { notifier, presence, ephemeral } = parts.syncBase
  const sources = sourcesOf(parts)
  let last: StreamPosition | undefined
  /** As long as no stream moves, all look at one object. */
  function now(): StreamPosition {
    const written = position()
    const newest = ledger.position()
    const passing = ephemeral.position()
    if (last?.events[0] === written && last.ledger === newest && last.ephemeral === passing) return last
    last = { events: [written], ledger: newest, toDevice: newest, ephemeral: passing, run: ephemeral.run }
    return last
  }
  const awaitNews = createAwaitNews({ clock, notifier, userRooms })
  const answers = createSentAnswers(notifier)
  return {
    now,
    sync: createSync({ clock, awaitNews, answers, presence, userRooms, sources, restores, metrics, now }),
    sliding: createSlidingServices({
      db: parts.db,
      clock,
      roomBase: parts.roomBase,
      presence,
      sources,
      restores,
      metrics,
      awaitNews,
      answers,
      threadSubscriptions: parts.threadSubscriptions,
      receipts: parts.receipts,
      notifier,
      now,
    }),
    keyChanges: createKeyChanges({ userRooms, sources, restores, now }),
    eventStream: createEventStream({ clock, notifier, sources, roomReader, now }),
    roomSnapshots: createRoomSnapshots({ sources, roomReader, directory, now }),
  }
}

function sourcesOf({ db, clock, users, roomBase, syncBase, access, typing, receipts }: SyncServiceParts): SyncSources {
  const { events, budget } = roomBase
  return {
    db,
    clock,
    tokenOf: createTokenOf(),
    users,
    events,
    registry: roomBase.registry,
    userRooms: roomBase.userRooms,
    unread: roomBase.unread,
    pushRules: roomBase.pushRules,
    roomEvents: roomBase.roomEvents,
    roomMembers: roomBase.roomMembers,
    partialStateRooms: roomBase.partialStateRooms,
    sticky: roomBase.sticky,
    presence: syncBase.presence,
    inboxes: syncBase.inboxes,
    deviceLists: syncBase.deviceLists,
    keyCounts: syncBase.keyCounts,
    profileChanges: syncBase.profileNews.changes,
    roomLedger: syncBase.ledgerWaker.rooms,
    userLedger: syncBase.ledgerWaker.users,
    states: createRoomStates({ db, events }),
    lazyMembers: createLazyMembers(budget),
    stretches: createSharedStretches(budget),
    sharedNews: createSharedTexts(budget),
    firstReadings: createFirstReadings(budget),
    answerPlaces: createAnswerPlaces(),
    timelineReads: new Map(),
    typing: typing.inRoom,
    receipts: receipts.between,
    visibleTo: access.visibleTo,
    membershipsAt: access.membershipsAt,
    mayShowUpTo: access.mayShowUpTo,
    lifetimes: roomBase.lifetimes,
    keepRelated: createKeepRelated({ db, events, access }),
    ignoredUsers: roomBase.ignoredUsers,
    shadowBans: roomBase.shadowBans,
    invitePermission: roomBase.invitePermission,
    bundle: createBundleAggregations({ db, events, access, ignoredUsers: roomBase.ignoredUsers }),
    sharedBundles: createSharedBundles({ db, events, access }),
  }
}
