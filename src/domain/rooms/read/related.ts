import type { RelatedBy } from '../../../core/filter.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getRelating } from '../../../store/events/relations.ts'
import { MAX_RELATIONS_FILTERED } from '../../limits/relations.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { Viewer } from '../room/viewer.ts'

/**
 * The events to which others relate as the filter requires (client-server API, "Relationship types"), in the same order. Only relating
 * events that the viewer may see count, and of each event the newest of them.
 */
export type KeepRelated = (
  viewer: Viewer,
  room: Room,
  events: readonly RoomEvent[],
  by: RelatedBy,
) => Promise<readonly RoomEvent[]>

export function createKeepRelated({
  db,
  events: cache,
  access,
}: {
  readonly db: Reader
  readonly events: EventCache
  readonly access: Pick<RoomAccess, 'visibleTo'>
}): KeepRelated {
  return async (viewer, room, events, { relTypes, senders }) => {
    const candidates = events.filter(({ hasRelations }) => hasRelations)
    if (candidates.length === 0) return []
    const rows = await getRelating(
      db,
      room.nid,
      candidates.map(({ id }) => id),
      { relTypes: relTypes && [...relTypes], senders: senders && [...senders], atMost: MAX_RELATIONS_FILTERED },
    )
    const relating = await cache.load(rows.map(({ child_nid }) => child_nid))
    const seen = new Set((await access.visibleTo(viewer, room, [...relating.values()])).map(({ nid }) => nid))
    const targets = new Set(rows.filter(({ child_nid }) => seen.has(child_nid)).map(({ target_id }) => target_id))
    return candidates.filter(({ id }) => targets.has(id))
  }
}
