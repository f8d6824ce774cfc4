import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import { loadReferences, type Reading } from '../room/client-event.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { BundleAggregations } from './bundles.ts'
import { readingOf } from './event-lists.ts'

/** How events are written for a user who sees nothing after the timeline position `upTo`: loads all that goes with them. */
export type FullReading = (by: Requester, room: Room, shown: readonly RoomEvent[], upTo?: number) => Promise<Reading>

export function createFullReading({
  events,
  access,
  clock,
  bundle,
}: {
  readonly events: EventCache
  readonly access: Pick<RoomAccess, 'membershipsAt'>
  readonly clock: Clock
  readonly bundle: BundleAggregations
}): FullReading {
  return async (by, room, shown, upTo = Number.MAX_SAFE_INTEGER) => {
    const reading = readingOf(by, room.id, clock)
    const [relations, membershipAt] = await Promise.all([
      bundle({ viewer: by, upTo }, room, shown),
      access.membershipsAt(by, room, shown),
      loadReferences(events, shown),
    ])
    return { ...reading, membershipAt, relations }
  }
}
