import type { Areas } from './areas.ts'
import type { Levels } from './domain/measures/level-metrics.ts'
import { lastBackup } from './store/backup/backup-runs.ts'
import { timeOfEvent } from './store/federation/federation-catch-up.ts'

/** The values that go up and down, as the metrics read them. */
export function levelsOf({
  base,
  roomBase,
  rooms,
  syncBase,
  accounts,
  admin,
  federation,
  sending,
  fanOut,
  eventsOut,
  pushing,
  searchIndex,
}: Areas): Levels {
  return {
    roomMemory: roomBase.memoryUse,
    waitingSyncs: syncBase.notifier.waiting,
    answerBytes: rooms.syncing.sync.bytesUnderWay,
    endedSyncs: () => syncBase.notifier.held.ended,
    waitingTransactions: base.db.waiting,
    database: base.db.pool,
    replicas: base.db.replicas?.states,
    caches() {
      const { events, rooms: inMemory, others } = roomBase.budget.uses
      return { events, rooms: inMemory, others, sessions: base.sessions.uses }
    },
    sending: sending.outgoing.queues,
    async oldestUnsent() {
      const { firstUnsent } = sending.outgoing.queues()
      return firstUnsent === undefined ? undefined : timeOfEvent(base.db, firstUnsent)
    },
    push: pushing.levels,
    unindexed: searchIndex.behind,
    waitingPeerRequests: federation.queues.waiting,
    serversAsked: fanOut.asking,
    refusedLogins: accounts.logins.refusals,
    monthlyActiveUsers: admin.statistics.latestMonthlyActiveUsers,
    lastBackup: async () => (await lastBackup(base.db))?.ended_at,
    appserviceFailures: eventsOut.failures,
  }
}
