import type { Ledger } from '../../store/db/ledger.ts'
import type { Notifier } from './notifier.ts'
import { RecentChanges } from './recent-changes.ts'

/**
 * Wakes syncs after something was written to the ledger, and remembers whom it concerned, so that everybody else's sync
 * need not ask the database. Call it between the commit and the publishing of its position: who reads at a position finds what
 * was noted for it.
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
