import type { ServerName } from '../../../core/ids.ts'
import type { Peers } from '../../../outbound/peers.ts'
import type { Database } from '../../../store/db/db.ts'
import type { Clock } from '../../clock.ts'
import type { UserRooms } from '../../sync/user-rooms.ts'
import type { Backfill } from '../backfill/backfill.ts'
import type { RoomAppservices } from '../room/appservices-of-room.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { RoomAccess } from '../room/room-access.ts'
import { createBundleAggregations } from './bundles.ts'
import { createEventAtTime, type EventAtTime } from './event-at-time.ts'
import { createFullReading } from './full-reading.ts'
import { createHistoryReader, type HistoryReader } from './history-reader.ts'
import type { IgnoredUsers } from './ignored-users.ts'
import { createMembersReader, type MembersReader } from './members-reader.ts'
import { createPositions } from './positions.ts'
import { createRecentReader, type RecentReader } from './recent-reader.ts'
import { createKeepRelated } from './related.ts'
import { createRelationsReader, type RelationsReader } from './relations-reader.ts'
import { createFindHits } from './search-hits.ts'
import { createSearchReader, type SearchReader } from './search-reader.ts'
import { createStateReader, type StateReader } from './state-reader.ts'
import { createTimeline } from './timeline.ts'

/** Everything that clients request about rooms. What they get without a request comes from sync. */
export type RoomReader = HistoryReader &
  StateReader &
  MembersReader &
  RelationsReader &
  SearchReader & { readonly eventAtTime: EventAtTime; readonly recent: RecentReader }

export function createRoomReader(parts: {
  readonly db: Database
  readonly events: EventCache
  readonly access: RoomAccess
  readonly ignoredUsers: Pick<IgnoredUsers, 'of'>
  readonly registry: RoomRegistry
  readonly userRooms: Pick<UserRooms, 'of'>
  readonly clock: Clock
  readonly backfill: Backfill
  readonly serverName: ServerName
  readonly peers: Pick<Peers, 'query'>
  readonly appservices: Pick<RoomAppservices, 'isUserOf'>
}): RoomReader {
  const positions = createPositions(parts)
  const keepRelated = createKeepRelated(parts)
  const bundle = createBundleAggregations(parts)
  const timeline = createTimeline({ ...parts, keepRelated })
  return {
    ...createHistoryReader({ ...parts, positions, timeline, keepRelated, bundle }),
    ...createRelationsReader({ ...parts, positions, bundle }),
    ...createSearchReader({
      ...parts,
      findHits: createFindHits(parts),
      timeline,
      fullReading: createFullReading({ ...parts, bundle }),
    }),
    ...createStateReader(parts),
    ...createMembersReader({ ...parts, positions }),
    eventAtTime: createEventAtTime({ ...parts, timeline }),
    recent: createRecentReader({ ...parts, positions, timeline, bundle }),
  }
}
