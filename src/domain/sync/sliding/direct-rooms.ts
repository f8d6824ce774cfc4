import { createBoundedMap } from '../../../core/cache.ts'
import { findAccountData } from '../../../store/accounts/account-data.ts'
import type { Reader } from '../../../store/db/db.ts'
import type { RecentChanges } from '../recent-changes.ts'

/** The ids of the rooms that a user's `m.direct` names. */
export type DirectRooms = (userNid: number, ledger: number) => ReadonlySet<string> | Promise<ReadonlySet<string>>

const MAX_USERS = 10_000
const MAX_ROOMS = 10_000

/** Reads `m.direct` once, and again after the user's account data changed. */
export function createDirectRooms(parts: { readonly db: Reader; readonly userLedger: RecentChanges }): DirectRooms {
  const { db, userLedger } = parts
  const known = createBoundedMap<number, { readonly readAt: number; readonly rooms: ReadonlySet<string> }>(MAX_USERS)

  async function read(userNid: number, ledger: number): Promise<ReadonlySet<string>> {
    const content = (await findAccountData(db, userNid, '', 'm.direct')) ?? {}
    const ids = Object.values(content).flatMap((rooms) => (Array.isArray(rooms) ? rooms : []))
    const rooms = new Set(ids.filter((id): id is string => typeof id === 'string').slice(0, MAX_ROOMS))
    known.set(userNid, { readAt: ledger, rooms })
    return rooms
  }

  return (userNid, ledger) => {
    const had = known.get(userNid)
    return had && userLedger.since(userNid, had.readAt) === false ? had.rooms : read(userNid, ledger)
  }
}
