import { createCache } from '../../core/cache.ts'
import { MAX_ROOMS_WITH_PUSHERS } from '../limits/pushers.ts'
import type { MembershipChange, Room } from '../rooms/room/room.ts'

/** The joined members of rooms who have pushers. */
export interface Audience<User> {
  of(room: Room): readonly User[]
  /** Memberships of a room were committed. */
  changed(room: Room, members: readonly MembershipChange[]): void
  /** Users got their first pusher, or lost their last one; or commits were missed. */
  forgetAll(): void
}

interface Known<User> {
  readonly byNid: Map<number, User>
  /** The same as a list, which each event of the room goes through; undefined after a change. */
  list: readonly User[] | undefined
}

/** @param users those with pushers, by number; asked at every look at a room that is not remembered */
export function createAudience<User extends {}>(users: ReadonlyMap<number, User>): Audience<User> {
  const rooms = createCache<number, Known<User>>(MAX_ROOMS_WITH_PUSHERS)

  function look({ localMembers }: Room): Map<number, User> {
    const found = new Map<number, User>()
    if (users.size < localMembers.size) {
      for (const [userNid, user] of users) if (localMembers.has(userNid)) found.set(userNid, user)
      return found
    }
    for (const userNid of localMembers.keys()) {
      const user = users.get(userNid)
      if (user) found.set(userNid, user)
    }
    return found
  }

  function know(room: Room): Known<User> {
    const known = rooms.get(room.nid)
    if (known) return known
    const found = { byNid: look(room), list: undefined }
    rooms.set(room.nid, found)
    return found
  }

  return {
    of(room) {
      const known = know(room)
      known.list ??= [...known.byNid.values()]
      return known.list
    },
    changed(room, members) {
      const known = rooms.get(room.nid)
      if (!known) return
      for (const { userNid, isLocal, after } of members) {
        if (!isLocal) continue
        const user = after === 'join' ? users.get(userNid) : undefined
        if (user) known.byNid.set(userNid, user)
        else known.byNid.delete(userNid)
        known.list = undefined
      }
    },
    forgetAll: () => rooms.clear(),
  }
}
