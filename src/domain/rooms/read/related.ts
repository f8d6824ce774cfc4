import type { RelatedBy } from '../../../core/filter.ts'
import { isObject } from '../../../core/json.ts'
import type { Reader } from '../../../store/db/db.ts'
import { getRelating } from '../../../store/events/relations.ts'
import { MAX_EVENTS_SEARCHED_FOR_RELATIONS } from '../../limits.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { Viewer } from '../room/viewer.ts'

/**
 * The events to which others relate as the filter requires (client-server API, "Relationship types"), in the same order. The search covers
 * a bounded number of events after the oldest of these, and only events that the viewer may see count.
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
  return async (viewer, room, events, by) => {
    const positions = events.flatMap(({ pos }) => (Number.isNaN(pos) ? [] : [pos]))
    if (positions.length === 0) return []
    const ids = new Set<string>(events.map(({ id }) => id))
    const rows = await getRelating(db, room.nid, Math.min(...positions), MAX_EVENTS_SEARCHED_FOR_RELATIONS)
    const relating = rows
      .map((row) => cache.adopt(row))
      .filter((event) => ids.has(targetOf(event, by) ?? '') && (by.senders?.has(event.sender) ?? true))
    const seen = await access.visibleTo(viewer, room, relating)
    const targets = new Set(seen.map((event) => targetOf(event, by)))
    return events.filter(({ id }) => targets.has(id))
  }
}

/** The event that an event relates to in one of the requested ways. */
function targetOf({ content }: RoomEvent, { relTypes }: RelatedBy): string | undefined {
  const relation = content['m.relates_to']
  if (!isObject(relation)) return undefined
  const { rel_type: relType, event_id: target } = relation
  if (typeof relType !== 'string' || typeof target !== 'string') return undefined
  return relTypes === undefined || relTypes.has(relType) ? target : undefined
}
