import type { EventId, RoomId } from '../../../core/ids.ts'
import type { Integer } from '../../../core/large-integers.ts'
import { MAX_EVENTS_PER_ANSWER, MAX_EVENTS_WALKED } from '../../limits.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { topological } from '../room/topological.ts'
import { loadIn, mayBeServed, prevIds } from './served-events.ts'

/** A range of events: after those that the asking server has, up to some that it knows of. */
export interface Between {
  readonly earliest: readonly EventId[]
  readonly latest: readonly EventId[]
  readonly limit: number
  /** The asking server has no use for events of lower depth. */
  readonly minDepth?: Integer
}

/** The events of a room that other servers may fetch. */
export interface ResidentEvents {
  /** Those of the requested events that exist, in the order of the request (`GET event`). */
  events(roomId: RoomId, eventIds: readonly EventId[]): Promise<RoomEvent[]>
  /** Events before `latest`, without these, back to `earliest`: those nearest to `latest`, oldest first (`POST get_missing_events`). */
  missingEvents(roomId: RoomId, between: Between): Promise<RoomEvent[]>
  /** Some events and those before them, newest first (`GET backfill`). */
  backfill(roomId: RoomId, eventIds: readonly EventId[], limit: number): Promise<RoomEvent[]>
}

export interface ResidentEventParts {
  readonly registry: RoomRegistry
  readonly events: EventCache
}

export function createResidentEvents({ registry, events: cache }: ResidentEventParts): ResidentEvents {
  /**
   * Walks breadth first along `prev_events`, from some events on. Stops at events seen before and at those of too low depth, after `limit`
   * events that may be served, and after a maximum of events looked at. Each step costs one query, or none for cached events.
   */
  async function walkBack(
    room: Room,
    from: readonly EventId[],
    seen: Set<EventId>,
    limit: number,
    minDepth: Integer = 0,
  ) {
    const given = new Map<EventId, RoomEvent>()
    let front = limit > 0 ? from : []
    for (let left = MAX_EVENTS_WALKED; left > 0 && front.length > 0; ) {
      const next = [...new Set(front)].filter((id) => !seen.has(id)).slice(0, left)
      left -= next.length
      for (const id of next) seen.add(id)
      const found = (await loadIn(cache, room, next)).filter(({ pdu }) => pdu.depth >= minDepth)
      for (const event of found) {
        if (event.hasPlace && mayBeServed(event)) given.set(event.id, event)
        if (given.size === limit) return given
      }
      front = found.flatMap(prevIds)
    }
    return given
  }

  return {
    async events(roomId, eventIds) {
      const room = await registry.get(roomId)
      if (!room) return []
      return (await loadIn(cache, room, [...new Set(eventIds)].slice(0, MAX_EVENTS_PER_ANSWER))).filter(mayBeServed)
    },

    async missingEvents(roomId, { earliest, latest, limit, minDepth }) {
      const room = await registry.get(roomId)
      if (!room) return []
      const ends = await loadIn(cache, room, latest.slice(0, MAX_EVENTS_PER_ANSWER))
      const seen = new Set([...earliest, ...latest])
      const given = await walkBack(room, ends.flatMap(prevIds), seen, capped(limit), minDepth)
      return [...topological(given, prevIds).order]
    },

    async backfill(roomId, eventIds, limit) {
      const room = await registry.get(roomId)
      if (!room) return []
      const given = await walkBack(room, eventIds.slice(0, MAX_EVENTS_PER_ANSWER), new Set(), capped(limit))
      return [...topological(given, prevIds).order].reverse()
    },
  }
}

function capped(limit: number): number {
  return Math.min(Math.max(limit, 0), MAX_EVENTS_PER_ANSWER)
}
