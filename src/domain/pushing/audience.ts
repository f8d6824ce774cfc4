import { createCache } from '../../core/cache.ts'
import { MAX_ROOMS_WITH_PUSHERS } from '../limits/pushers.ts'
import type { MembershipChange, Room } from '../rooms/room/room.ts'

/** The joined members of rooms who have pushers. */
export interface Audience {
  of(room: Room): ReadonlySet<number>
  /** Memberships of a room were committed. */
  changed(room: Room, members: readonly MembershipChange[]): void
  /** Users got their first pusher, or lost their last one; or commits were missed. */
  forgetAll(): void
}

/** @param hasPushers whether a user has any; asked at every look at a room that is not remembered */
export function createAudience(users: {
  has(userNid: number): boolean
  keys(): Iterable<number>
  readonly size: number
}): Audience {
  const rooms = createCache<number, Set<number>>(MAX_ROOMS_WITH_PUSHERS)

  function look({ localMembers }: Room): Set<number> {
    const [fewer, others] = users.size < localMembers.size ? [users, localMembers] : [localMembers, users]
    const found = new Set<number>()
    for (const userNid of fewer.keys()) if (others.has(userNid)) found.add(userNid)
    return found
  }

  return {
    of(room) {
      const known = rooms.get(room.nid)
      if (known) return known
      const found = look(room)
      rooms.set(room.nid, found)
      return found
    },
    changed(room, members) {
      const known = rooms.get(room.nid)
      if (!known) return
      for (const { userNid, isLocal, after } of members) {
        if (!isLocal) continue
        if (after === 'join' && users.has(userNid)) known.add(userNid)
        else if (after !== 'join') known.delete(userNid)
      }
    },
    forgetAll: () => rooms.clear(),
  }
}
