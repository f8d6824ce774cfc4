import { createCache } from '../core/cache.ts'
import type { UserId } from '../core/ids.ts'
import { findUserNids, internUsers, userIdsOf } from '../store/accounts/users.ts'
import type { Database } from '../store/db/db.ts'

/** User ids and their numeric ids. */
export interface Users {
  /** The numeric ids of users. A user without one gets one. */
  intern(userIds: readonly UserId[]): Promise<Map<UserId, number>>
  /** The cached numeric ids, without a database query. */
  known(userIds: readonly UserId[]): Map<UserId, number>
  /** The numeric id of a user, undefined if the user has none. */
  find(userId: UserId): Promise<number | undefined>
  idsOf(userNids: readonly number[]): Promise<Map<number, UserId>>
}

export function createUsers({ db, max = 50_000 }: { db: Database; max?: number }): Users {
  const nids = createCache<UserId, number>(max)
  const ids = createCache<number, UserId>(max)

  function remember(userId: UserId, nid: number): void {
    nids.set(userId, nid)
    ids.set(nid, userId)
  }

  function known(userIds: readonly UserId[]): Map<UserId, number> {
    const found = new Map<UserId, number>()
    for (const userId of userIds) {
      const nid = nids.get(userId)
      if (nid !== undefined) found.set(userId, nid)
    }
    return found
  }

  return {
    known,
    async intern(userIds) {
      const found = known(userIds)
      const missing = userIds.filter((userId) => !found.has(userId))
      if (missing.length === 0) return found
      for (const [userId, nid] of await db.tx((tx) => internUsers(tx, missing))) {
        remember(userId, nid)
        found.set(userId, nid)
      }
      return found
    },
    async find(userId) {
      const remembered = nids.get(userId)
      if (remembered !== undefined) return remembered
      const nid = (await findUserNids(db, [userId])).get(userId)
      if (nid !== undefined) remember(userId, nid)
      return nid
    },
    async idsOf(userNids) {
      const found = new Map<number, UserId>()
      const missing: number[] = []
      for (const nid of userNids) {
        const userId = ids.get(nid)
        if (userId === undefined) missing.push(nid)
        else found.set(nid, userId)
      }
      if (missing.length === 0) return found
      for (const [nid, userId] of await userIdsOf(db, missing)) {
        remember(userId, nid)
        found.set(nid, userId)
      }
      return found
    },
  }
}
