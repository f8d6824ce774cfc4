import type { JsonObject } from '../../../core/json.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { ThreadSubscriptions } from '../../push/thread-subscriptions.ts'
import type { LazyMembers } from '../lazy-members.ts'
import type { SharedAnswer, SharedTexts } from '../shared-stretches.ts'
import type { BumpStamps } from './bump-stamps.ts'
import type { Departures } from './departures.ts'
import type { DirectRooms } from './direct-rooms.ts'
import type { Heroes } from './heroes.ts'
import type { KnownRoomsOf } from './known-rooms.ts'
import type { Recency } from './recency.ts'
import type { KnownFacts } from './room-facts.ts'

/** What a sliding sync reads besides what every sync reads. */
export interface SlidingSources {
  /** What answers said of rooms with new events and no other news. */
  readonly sharedAnswers: SharedTexts<SharedAnswer>
  /** Which members the connections were sent, by connection. */
  readonly slidingMembers: LazyMembers<string>
  readonly recency: Recency
  readonly knownRooms: KnownRoomsOf
  readonly directRooms: DirectRooms
  readonly departures: Departures
  readonly bumpStamps: BumpStamps
  readonly heroes: Heroes
  readonly roomFacts: KnownFacts
  readonly threadSubscriptions: Pick<ThreadSubscriptions, 'list'>
  /** The content of `m.receipt` for rooms that are new to a reader: own receipts, and those of others at these events. */
  firstReceipts(
    by: Requester,
    roomNids: readonly number[],
    eventNids: readonly number[],
    upTo: number,
  ): Promise<ReadonlyMap<number, JsonObject>>
}
