import type { Ledger } from '../../store/db/ledger.ts'
import type { Notifier } from './notifier.ts'
import { RecentChanges } from './recent-changes.ts'

/**
 * Wakes syncs after a write to the ledger, and records whom it concerned, so that other syncs need no query. Call it between the commit and
 * the publishing of its position, so that a reader at a position finds the record for it.
 */
export interface LedgerWaker {
  /** All members of a room may see it: receipts. */
  wakeRoom(roomNid: number, position: number): void
  /** Only these users see it: account data. */
  wakeUsers(userNids: Iterable<number>, position: number): void
  readonly rooms: RecentChanges
  readonly users: RecentChanges
}

export function createLedgerWaker({ ledger, notifier }: { ledger: Ledger; notifier: Notifier }): LedgerWaker {
  const rooms = new RecentChanges(ledger.position())
  const users = new RecentChanges(ledger.position())
  ledger.onMissed(() => {
    for (const changes of [rooms, users]) changes.forget(ledger.position())
    notifier.missed()
  })
  return {
    rooms,
    users,
    wakeRoom(roomNid, position) {
      rooms.record(roomNid, position)
      notifier.wakeRoom(roomNid)
    },
    wakeUsers(userNids, position) {
      for (const userNid of userNids) {
        users.record(userNid, position)
        notifier.wakeUsers([userNid])
      }
    },
  }
}
