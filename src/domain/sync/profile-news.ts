import type { Ledger } from '../../store/db/ledger.ts'
import { MAX_MEMBERS_SHARING_PRESENCE } from '../limits.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Notifier } from './notifier.ts'
import { RecentChanges } from './recent-changes.ts'
import type { UserRooms } from './user-rooms.ts'

/** Tells syncs of changed profiles. Others hear of a name or avatar from the member events, too. */
export interface ProfileNews {
  /** The newest change of each user's profile, as a position of the ledger. */
  readonly changes: RecentChanges
  /** Records a change before its position is published, and wakes those who share a small room. The others learn of it when they look next. */
  changed(userNid: number, position: number): void
}

export function createProfileNews(parts: {
  readonly ledger: Ledger
  readonly registry: Pick<RoomRegistry, 'peek'>
  readonly userRooms: UserRooms
  readonly notifier: Pick<Notifier, 'wakeRoom' | 'wakeUsers'>
}): ProfileNews {
  const { ledger, registry, userRooms, notifier } = parts
  const changes = new RecentChanges(ledger.position())
  ledger.onMissed(() => changes.forget(ledger.position()))

  async function wakeNeighbours(userNid: number): Promise<void> {
    for (const [nid, { membership }] of await userRooms.of(userNid)) {
      const room = membership === 'join' ? registry.peek(nid) : undefined
      if (room && room.localMembers.size <= MAX_MEMBERS_SHARING_PRESENCE) notifier.wakeRoom(nid)
    }
  }

  return {
    changes,
    changed(userNid, position) {
      changes.record(userNid, position)
      notifier.wakeUsers([userNid])
      // If the database is away, the neighbours see it when they look next.
      wakeNeighbours(userNid).catch(() => {})
    },
  }
}
