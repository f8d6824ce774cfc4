import type { Ledger } from '../../store/ledger.ts'
import type { Notifier } from './notifier.ts'
import { RecentChanges } from './recent-changes.ts'

/**
 * Wakes syncs after something was written to the ledger, and remembers whom it concerned, so that everybody else's sync
 * need not ask the database. Call it after the ledger's commit.
 */
export interface LedgerWaker {
  /** All members of a room may see it: receipts. */
  wakeRoom(roomNid: number): void
  /** Only these users see it: account data. */
  wakeUsers(userNids: Iterable<number>): void
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
    wakeRoom(roomNid) {
      rooms.record(roomNid, ledger.position())
      notifier.wakeRoom(roomNid)
    },
    wakeUsers(userNids) {
      for (const userNid of userNids) {
        users.record(userNid, ledger.position())
        notifier.wakeUsers([userNid])
      }
    },
  }
}
