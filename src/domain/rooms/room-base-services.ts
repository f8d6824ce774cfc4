import type { ByteBudget } from '../../core/byte-budget.ts'
import { lastPosition } from '../../store/events/events.ts'
import type { Base } from '../base.ts'
import type { NodeLease } from '../cluster/node-lease.ts'
import { MAX_JOURNALED_CHANGES } from '../limits/sliding-sync.ts'
import { openShadowBans, type ShadowBans } from '../moderation/shadow-bans.ts'
import { openPushRules, type PushRules } from '../push/rules.ts'
import { openThreadFollowers, type ThreadFollowers } from '../push/thread-followers.ts'
import { createSearchSignals, type SearchSignals } from '../search/search-signals.ts'
import { JournaledChanges, RecentChanges } from '../sync/recent-changes.ts'
import { createUnread, type Unread } from '../sync/unread.ts'
import { createUserRooms, type UserRooms } from '../sync/user-rooms.ts'
import { createInvitePermission, type InvitePermission } from './act/invite-permission.ts'
import { type ErasedUsers, openErasedUsers } from './read/erased-users.ts'
import { type IgnoredUsers, openIgnoredUsers } from './read/ignored-users.ts'
import { type Checkpoints, createCheckpoints } from './room/checkpoints.ts'
import { createEventCache, type EventCache } from './room/event-cache.ts'
import { openPartialStateRooms, type PartialStateRooms } from './room/partial-state-rooms.ts'
import { createPushSignals, type PushSignals } from './room/push-signals.ts'
import { createRoomRegistry, type RoomRegistry } from './room/registry.ts'
import { createLifetimes, type Lifetimes } from './room/retention/lifetimes.ts'
import { openRoomMemory, type RoomMemoryUse } from './room/room-memory.ts'
import { openRestoredRooms, type RestoredRooms } from './write/restored-rooms.ts'
import { openStickyAppeals, type StickyAppeals } from './write/sticky-appeals.ts'
import { openStickyEvents, type StickyEvents } from './write/sticky-events.ts'

/** What this process holds of rooms, before anything reads or writes one. */
export interface RoomBase {
  /** The place of this process among the nodes, with the connection that writes events. */
  readonly node: NodeLease
  /** The budget for all caches of rooms and events. */
  readonly budget: ByteBudget
  readonly events: EventCache
  readonly registry: RoomRegistry
  readonly partialStateRooms: PartialStateRooms
  /** Rooms that wait for what other servers have of lost events. */
  readonly restoredRooms: RestoredRooms
  readonly userRooms: UserRooms
  readonly erasedUsers: ErasedUsers
  readonly ignoredUsers: IgnoredUsers
  /** For how long messages are kept; undefined: for ever. */
  readonly lifetimes: Lifetimes | undefined
  readonly invitePermission: InvitePermission
  /** Users whose events only they see. */
  readonly shadowBans: ShadowBans
  readonly unread: Unread
  readonly pushRules: PushRules
  readonly threadFollowers: ThreadFollowers
  readonly pushSignals: PushSignals
  readonly searchSignals: SearchSignals
  readonly checkpoints: Checkpoints
  readonly sticky: StickyEvents
  readonly stickyAppeals: StickyAppeals
  /** The newest event of each room, and below it the newest that changed a membership, as far as this process has seen. */
  readonly roomEvents: JournaledChanges
  readonly roomMembers: RecentChanges
  /** Bytes in the caches of rooms. */
  memoryUse(): RoomMemoryUse
  close(): void
}

export async function openRoomBase(parts: {
  readonly base: Pick<Base, 'config' | 'db' | 'node' | 'clock' | 'log'>
  /** The memory budget, where it is not the default. */
  readonly memoryBytes?: number | undefined
}): Promise<RoomBase> {
  const { config, db, node, clock, log } = parts.base
  const serverName = config.server_name
  const position = await lastPosition(node.writing, node.writer)
  const { budget, use, close } = openRoomMemory(parts.memoryBytes)
  const events = createEventCache({ db, budget })
  const partialStateRooms = await openPartialStateRooms({ db, clock, log })
  const registry = createRoomRegistry({ db, events, serverName, partialStateRooms, budget })
  const ignoredUsers = await openIgnoredUsers({ db, budget })
  const threadFollowers = await openThreadFollowers({ db, budget, events })
  const pushRules = await openPushRules({ db, budget, ignoredUsers, threadFollowers })
  return {
    node,
    budget,
    events,
    registry,
    partialStateRooms,
    restoredRooms: await openRestoredRooms({ db, registry }),
    userRooms: createUserRooms({ db, budget }),
    erasedUsers: await openErasedUsers({ db, events }),
    ignoredUsers,
    lifetimes: createLifetimes({ config, clock }),
    shadowBans: await openShadowBans({ db }),
    unread: createUnread({ db, budget, pushRules, ignoredUsers }),
    pushRules,
    threadFollowers,
    invitePermission: createInvitePermission({ db }),
    pushSignals: createPushSignals(),
    searchSignals: createSearchSignals(),
    checkpoints: createCheckpoints({ db, log }),
    sticky: await openStickyEvents({ db, clock, log }),
    stickyAppeals: await openStickyAppeals({ db, clock, log }),
    roomEvents: new JournaledChanges(position, MAX_JOURNALED_CHANGES),
    roomMembers: new RecentChanges(position),
    memoryUse: () => use({ events, rooms: registry }),
    close,
  }
}
