import { createCache } from '../../core/cache.ts'
import { MAX_BADGES } from '../limits/pushers.ts'
import type { UserRooms } from '../sync/user-rooms.ts'
import type { UnreadRooms } from './unread-rooms.ts'

/**
 * How much a user has not read: their unread messages in all rooms, and their invitations. It is counted once, and then again only for
 * rooms that changed.
 */
export interface Badges {
  of(userNid: number): Promise<number>
  /** A room may have another count now. */
  changed(userNid: number, roomNid: number): void
  /** Whether something was unread in a room when it was counted last. */
  wasUnread(userNid: number, roomNid: number): boolean
  /** The user's rooms are others now. */
  forget(userNid: number): void
  forgetAll(): void
}

interface Badge {
  /** The counts of rooms with unread messages. */
  readonly rooms: Map<number, number>
  readonly invitations: number
  readonly stale: Set<number>
}

export function createBadges({
  userRooms,
  unreadRooms,
}: {
  readonly userRooms: Pick<UserRooms, 'of'>
  readonly unreadRooms: UnreadRooms
}): Badges {
  const badges = createCache<number, Badge>(MAX_BADGES)

  async function countStale(userNid: number, { rooms, stale }: Badge): Promise<void> {
    const roomNids = [...stale]
    stale.clear()
    try {
      const counts = await unreadRooms(userNid, roomNids)
      for (const nid of roomNids) {
        const count = counts.get(nid)?.notification_count
        if (count === undefined) rooms.delete(nid)
        else rooms.set(nid, count)
      }
    } catch (error) {
      badges.delete(userNid)
      throw error
    }
  }

  async function begin(userNid: number): Promise<Badge> {
    const memberships = [...(await userRooms.of(userNid))]
    const joined = memberships.flatMap(([nid, { membership }]) => (membership === 'join' ? [nid] : []))
    const invitations = memberships.filter(([, { membership }]) => membership === 'invite').length
    const badge = { rooms: new Map<number, number>(), invitations, stale: new Set(joined) }
    badges.set(userNid, badge)
    return badge
  }

  return {
    async of(userNid) {
      const badge = badges.get(userNid) ?? (await begin(userNid))
      if (badge.stale.size > 0) await countStale(userNid, badge)
      let total = badge.invitations
      for (const count of badge.rooms.values()) total += count
      return total
    },
    changed: (userNid, roomNid) => void badges.get(userNid)?.stale.add(roomNid),
    wasUnread: (userNid, roomNid) => badges.get(userNid)?.rooms.has(roomNid) === true,
    forget: (userNid) => void badges.delete(userNid),
    forgetAll: () => badges.clear(),
  }
}
