import { createCache } from '../../core/cache.ts'
import { MAX_BADGES } from '../limits/pushers.ts'
import type { IgnoredUsers } from '../rooms/read/ignored-users.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { UserRooms } from '../sync/user-rooms.ts'
import type { UnreadRooms } from './unread-rooms.ts'

/**
 * How much a user has not read: their unread messages in all rooms, and their invitations. It is counted once, and then again only for
 * rooms that changed.
 */
export interface Badges {
  /** At once if memory tells. */
  of(userNid: number): number | Promise<number>
  /** A room may have another count now. */
  changed(userNid: number, roomNid: number): void
  /** Whether something was unread in a room when it was counted last. */
  wasUnread(userNid: number, roomNid: number): boolean
  /** Whether something may be unread in a room, as far as memory tells. */
  mayHaveUnread(userNid: number, roomNid: number): boolean
  /** The user's rooms are others now. */
  forget(userNid: number): void
  forgetAll(): void
}

interface Badge {
  /** The counts of rooms with unread messages. */
  readonly rooms: Map<number, number>
  readonly invitations: number
  readonly stale: Set<number>
  /** The last count of each room that is being counted: an earlier one that ends later says nothing any more. */
  readonly counting: Map<number, object>
}

export function createBadges({
  userRooms,
  events,
  ignoredUsers,
  unreadRooms,
}: {
  readonly events: Pick<EventCache, 'load'>
  readonly ignoredUsers: Pick<IgnoredUsers, 'of'>
  readonly userRooms: Pick<UserRooms, 'of'>
  readonly unreadRooms: UnreadRooms
}): Badges {
  const badges = createCache<number, Badge>(MAX_BADGES)

  async function countStale(userNid: number, { rooms, stale, counting }: Badge): Promise<void> {
    const roomNids = [...stale]
    const own = {}
    stale.clear()
    for (const nid of roomNids) counting.set(nid, own)
    try {
      const counts = await unreadRooms.of(userNid, roomNids)
      for (const nid of roomNids) {
        if (counting.get(nid) !== own) continue
        counting.delete(nid)
        const count = counts.get(nid)?.notification_count
        if (count === undefined) rooms.delete(nid)
        else rooms.set(nid, count)
      }
    } catch (error) {
      badges.delete(userNid)
      throw error
    }
  }

  /** How many invitations are not of users whom the user ignores (client-server API, "Ignoring users"). */
  async function countHeard(userNid: number, invites: readonly number[]): Promise<number> {
    const ignored = invites.length === 0 ? undefined : await ignoredUsers.of(userNid)
    if (ignored === undefined) return invites.length
    return [...(await events.load(invites)).values()].filter(({ sender }) => !ignored.has(sender)).length
  }

  async function begin(userNid: number): Promise<Badge> {
    const memberships = [...(await userRooms.of(userNid))]
    const joined = memberships.flatMap(([nid, { membership }]) => (membership === 'join' ? [nid] : []))
    const invites = memberships.flatMap(([, { membership, eventNid }]) => (membership === 'invite' ? [eventNid] : []))
    const invitations = await countHeard(userNid, invites)
    const badge = { rooms: new Map<number, number>(), invitations, stale: new Set(joined), counting: new Map() }
    badges.set(userNid, badge)
    return badge
  }

  async function count(userNid: number, known: Badge | undefined): Promise<number> {
    const badge = known ?? (await begin(userNid))
    if (badge.stale.size > 0) await countStale(userNid, badge)
    return sum(badge)
  }

  /** Counts the one room that changed, as is usual for a phone that is told of each message. False if memory does not tell. */
  function countOne(userNid: number, { rooms, stale, counting }: Badge): boolean {
    const [roomNid] = stale
    const unread = roomNid === undefined ? undefined : unreadRooms.now(userNid, roomNid)
    if (roomNid === undefined || unread === undefined) return false
    stale.delete(roomNid)
    counting.delete(roomNid)
    if (unread === 0) rooms.delete(roomNid)
    else rooms.set(roomNid, unread)
    return true
  }

  return {
    of(userNid) {
      const badge = badges.get(userNid)
      if (!badge || badge.stale.size > 1) return count(userNid, badge)
      return badge.stale.size === 0 || countOne(userNid, badge) ? sum(badge) : count(userNid, badge)
    },
    changed: (userNid, roomNid) => void badges.get(userNid)?.stale.add(roomNid),
    wasUnread: (userNid, roomNid) => badges.get(userNid)?.rooms.has(roomNid) === true,
    mayHaveUnread(userNid, roomNid) {
      const badge = badges.get(userNid)
      return badge === undefined || badge.rooms.has(roomNid) || badge.stale.has(roomNid) || badge.counting.has(roomNid)
    },
    forget: (userNid) => void badges.delete(userNid),
    forgetAll: () => badges.clear(),
  }
}

function sum({ rooms, invitations }: Badge): number {
  let total = invitations
  for (const count of rooms.values()) total += count
  return total
}
