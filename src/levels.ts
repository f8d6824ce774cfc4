import type { Areas } from './areas.ts'
import type { Levels } from './domain/metrics.ts'
import { lastBackup } from './store/backup/backup-runs.ts'

/** The values that go up and down, as the metrics read them. */
export function levelsOf({
  base,
  roomBase,
  rooms,
  syncBase,
  accounts,
  admin,
  federation,
  fanOut,
  eventsOut,
}: Areas): Levels {
  return {
    roomMemory: roomBase.memoryUse,
    waitingSyncs: syncBase.notifier.waiting,
    answerBytes: rooms.syncing.sync.bytesUnderWay,
    endedSyncs: () => syncBase.notifier.held.ended,
    waitingTransactions: base.db.waiting,
    waitingPeerRequests: federation.queues.waiting,
    serversAsked: fanOut.asking,
    refusedLogins: accounts.logins.refusals,
    monthlyActiveUsers: admin.statistics.latestMonthlyActiveUsers,
    lastBackup: async () => (await lastBackup(base.db))?.ended_at,
    appserviceFailures: eventsOut.failures,
  }
}
