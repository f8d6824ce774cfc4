import type { Database } from '../../../store/db/db.ts'
import type { Clock } from '../../clock.ts'
import type { SyncMetrics } from '../../measures/work-metrics.ts'
import type { ThreadSubscriptions } from '../../push/thread-subscriptions.ts'
import type { Restores } from '../../restores.ts'
import type { Receipts } from '../../rooms/read/receipts.ts'
import type { RoomBase } from '../../rooms/room-base-services.ts'
import type { AwaitNews } from '../await-news.ts'
import { createLazyMembers } from '../lazy-members.ts'
import type { Notifier } from '../notifier.ts'
import type { Presence } from '../presence.ts'
import type { SentAnswers } from '../sent-answers.ts'
import { createSharedTexts } from '../shared-stretches.ts'
import type { SyncSources } from '../sources.ts'
import type { StreamPosition } from '../token.ts'
import { createBumpStamps } from './bump-stamps.ts'
import { createConnections } from './connections.ts'
import { createDepartures } from './departures.ts'
import { createDirectRooms } from './direct-rooms.ts'
import { createHeroes } from './heroes.ts'
import { createKnownRooms } from './known-rooms.ts'
import { createSlidingRequests, type SlidingRequests } from './read-request.ts'
import { createRecency } from './recency.ts'
import { createRoomFacts } from './room-facts.ts'
import { createSlidingSync, type SlidingSync } from './sliding-sync.ts'
import type { SlidingSources } from './sources.ts'

export interface SlidingServices {
  readonly slidingRequests: SlidingRequests
  readonly slidingSync: SlidingSync
}

export function createSlidingServices(parts: {
  readonly db: Database
  readonly clock: Clock
  readonly roomBase: Pick<RoomBase, 'budget'>
  readonly presence: Presence
  readonly sources: SyncSources
  readonly restores: Restores
  readonly metrics: SyncMetrics
  readonly awaitNews: AwaitNews
  readonly answers: SentAnswers
  readonly threadSubscriptions: Pick<ThreadSubscriptions, 'list'>
  readonly receipts: Pick<Receipts, 'first'>
  readonly notifier: Pick<Notifier, 'began'>
  now(): StreamPosition
}): SlidingServices {
  const { db, clock, presence, sources, restores, metrics, awaitNews, answers, threadSubscriptions, receipts } = parts
  const { notifier, now } = parts
  const { budget } = parts.roomBase
  const { events, registry, roomEvents, userLedger } = sources
  const recency = createRecency({ db, roomEvents })
  const own: SlidingSources = {
    recency,
    threadSubscriptions,
    sharedAnswers: createSharedTexts(budget),
    slidingMembers: createLazyMembers<string>(budget),
    knownRooms: createKnownRooms({ budget, recency, roomEvents }),
    directRooms: createDirectRooms({ db, userLedger }),
    departures: createDepartures(events),
    bumpStamps: createBumpStamps(db),
    heroes: createHeroes(db),
    roomFacts: createRoomFacts({ db, registry, recency }),
    firstReceipts: receipts.first,
  }
  const connections = createConnections({ db, clock, budget })
  return {
    slidingRequests: createSlidingRequests(budget),
    slidingSync: createSlidingSync({
      clock,
      budget,
      awaitNews,
      answers,
      presence,
      connections,
      sources,
      restores,
      metrics,
      own,
      notifier,
      now,
    }),
  }
}
