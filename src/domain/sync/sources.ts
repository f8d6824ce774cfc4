import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import type { Database } from '../../store/db/db.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Clock } from '../clock.ts'
import type { Inboxes } from '../e2e/inboxes.ts'
import type { DeviceLists } from '../keys/device-lists.ts'
import type { DeviceKeyCounts } from '../keys/key-counts.ts'
import type { ShadowBans } from '../moderation/shadow-bans.ts'
import type { PushRules } from '../push/rules.ts'
import type { InvitePermission } from '../rooms/act/invite-permission.ts'
import type { BundleAggregations } from '../rooms/read/bundles.ts'
import type { IgnoredUsers } from '../rooms/read/ignored-users.ts'
import type { KeepRelated } from '../rooms/read/related.ts'
import type { SharedBundles } from '../rooms/read/shared-bundles.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { PartialStateRooms } from '../rooms/room/partial-state-rooms.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Lifetimes } from '../rooms/room/retention/lifetimes.ts'
import type { RoomAccess } from '../rooms/room/room-access.ts'
import type { StickyEvents } from '../rooms/write/sticky-events.ts'
import type { Users } from '../users.ts'
import type { AnswerPlaces } from './first/answer-places.ts'
import type { FirstReadings, TimelineReads } from './first/readings.ts'
import type { LazyMembers } from './lazy-members.ts'
import type { Presence } from './presence.ts'
import type { JournaledChanges, RecentChanges } from './recent-changes.ts'
import type { RoomStates } from './room-state.ts'
import type { SharedNews, SharedStretches, SharedTexts } from './shared-stretches.ts'
import type { StreamPosition } from './token.ts'
import type { Unread } from './unread.ts'
import type { UserRooms } from './user-rooms.ts'

/** Everything that a sync reads. */
export interface SyncSources {
  readonly db: Pick<Database, 'query' | 'bulk'>
  readonly clock: Clock
  /** The token of a position, made once for all who are at it. */
  tokenOf(position: StreamPosition): string
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly userRooms: UserRooms
  readonly states: RoomStates
  readonly stretches: SharedStretches
  readonly sharedNews: SharedTexts<SharedNews>
  readonly firstReadings: FirstReadings
  readonly answerPlaces: AnswerPlaces
  readonly timelineReads: TimelineReads
  readonly unread: Unread
  readonly pushRules: Pick<PushRules, 'changedAt' | 'ruleset'>
  readonly lazyMembers: LazyMembers
  readonly presence: Presence
  /** Messages to devices. */
  readonly inboxes: Inboxes
  /** The newest event of each room, as far as this process has seen. */
  readonly roomEvents: JournaledChanges
  /** The newest event of each room that changed a membership. */
  readonly roomMembers: RecentChanges
  /** The rooms with partial state, and the positions at which earlier ones became complete. */
  readonly partialStateRooms: Pick<PartialStateRooms, 'of' | 'completeAt'>
  readonly users: Users
  readonly sticky: StickyEvents
  readonly deviceLists: DeviceLists
  readonly keyCounts: DeviceKeyCounts
  /** The newest ledger entry for each room: receipts. */
  readonly roomLedger: RecentChanges
  /** The newest ledger entry for each user's profile. */
  readonly profileChanges: RecentChanges
  /** The newest ledger entry for each user: account data. */
  readonly userLedger: RecentChanges
  /** Who types in a room, and the position at which that last changed; undefined when nobody did since the start. */
  typing(roomNid: number): { readonly userIds: readonly UserId[]; readonly position: number } | undefined
  /** The content of `m.receipt` for each room with receipts between two ledger positions that the user may see. */
  receipts(
    by: Requester,
    roomNids: readonly number[],
    after: number,
    upTo: number,
  ): Promise<ReadonlyMap<number, JsonObject>>
  /** The events of a room that the user may see. */
  readonly visibleTo: RoomAccess['visibleTo']
  /** The user's membership at each of these events. */
  readonly membershipsAt: RoomAccess['membershipsAt']
  readonly mayShowUpTo: RoomAccess['mayShowUpTo']
  /** Undefined where messages are kept for ever. */
  readonly lifetimes: Pick<Lifetimes, 'horizon'> | undefined
  readonly keepRelated: KeepRelated
  readonly bundle: BundleAggregations
  readonly sharedBundles: SharedBundles
  readonly ignoredUsers: Pick<IgnoredUsers, 'of'>
  /** The events that only their sender sees. */
  readonly shadowBans: Pick<ShadowBans, 'ghosts' | 'ghostRooms'>
  readonly invitePermission: Pick<InvitePermission, 'verdict'>
}
