import type { EventId, RoomId } from '../../../core/ids.ts'
import type { Integer } from '../../../core/large-integers.ts'
import { MAX_EVENTS_PER_ANSWER, MAX_EVENTS_WALKED } from '../../limits.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { topological } from '../room/topological.ts'
import { loadIn, mayBeServed, prevIds } from './served-events.ts'

/** Events between some that the asking server has and some that it knows of. */
export interface Between {
  readonly earliest: readonly EventId[]
  readonly latest: readonly EventId[]
  readonly limit: number
  /** What is less deep is of no use to it. */
  readonly minDepth?: Integer
}

/** The events of a room for other servers that ask for them. */
export interface ResidentEvents {
  /** Those of some events that there are, in the order asked for (`GET event`). */
  events(roomId: RoomId, eventIds: readonly EventId[]): Promise<RoomEvent[]>
  /** Back from `latest`, without these, as far as `earliest`: those nearest to `latest`, oldest first (`POST get_missing_events`). */
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
   * Breadth first along `prev_events`, starting with some events themselves. Ends at those seen before and those that are not deep
   * enough, after `limit` events that may be given, and after a number of events looked at whatever they are: a query per step, none
   * for what is cached.
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
