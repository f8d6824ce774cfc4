import type { Reader } from '../../store/db/db.ts'
import { getTimelineBackwards } from '../../store/events/events.ts'
import { MAX_TIMELINE_BYTES } from '../limits.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { Place, Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { type EventPosition, isNewer } from './token.ts'

export interface TimelineWish {
  /** Give only what a reader at this position has not seen. */
  readonly since: EventPosition | undefined
  /** Nothing that was committed after this. */
  readonly upTo: EventPosition
  readonly limit: number
  readonly wants: ((event: RoomEvent) => boolean) | undefined
  /** Only what lies before this place of the room's timeline, to go on from an earlier slice. */
  readonly below?: number
}

export interface TimelineSlice {
  /** Oldest first. */
  readonly events: readonly RoomEvent[]
  /** There are more events after `since` than were given. */
  readonly limited: boolean
}

export interface RawSlice extends TimelineSlice {
  /** Where to go on with what the limit cut off. */
  readonly rest?: number
}

export const PAGE = 64
/** How far back one sync looks for events that pass a filter and that its reader may see. */
export const MAX_EVENTS_SCANNED = 640

/** The newest events of a room, from memory as far as it reaches and from the database beyond. */
export async function readTimeline(db: Reader, cache: EventCache, room: Room, wish: TimelineWish): Promise<RawSlice> {
  const found: RoomEvent[] = []
  let scanned = 0
  let bytes = 0
  let laterPos = wish.below
  for await (const page of backwards(db, cache, room, wish)) {
    for (const event of page) {
      // What was fetched of history is to be asked for by turning back the pages.
      if (event.isHistory) return { events: found.reverse(), limited: true }
      if (isNewer(event.streamPos, wish.upTo)) continue
      // What is missing in between is to be asked for, not skipped.
      if (laterPos !== undefined && laterPos - event.pos > 1) return { events: found.reverse(), limited: true }
      if (wish.since && !isNewer(event.streamPos, wish.since)) return { events: found.reverse(), limited: false }
      if (!wish.wants || wish.wants(event)) {
        if (found.length === wish.limit) return { events: found.reverse(), limited: true, rest: event.pos + 1 }
        if (found.length > 0 && bytes + event.json.length > MAX_TIMELINE_BYTES) {
          return { events: found.reverse(), limited: true }
        }
        bytes += event.json.length
        found.push(event)
      }
      laterPos = event.pos
    }
    scanned += page.length
    if (scanned >= MAX_EVENTS_SCANNED) return { events: found.reverse(), limited: true }
  }
  // A room that was joined elsewhere begins with a gap.
  return { events: found.reverse(), limited: laterPos !== undefined && laterPos > 1 }
}

/** Places in memory that are to be looked at, newest first: as far as a sync that is nearly up to date wants to know. */
function placesWanted(
  { timeline }: Room,
  { since, upTo, limit, wants, below = Number.POSITIVE_INFINITY }: TimelineWish,
): Place[] {
  const places: Place[] = []
  for (let index = timeline.length - 1; index >= 0; index--) {
    const place = timeline[index]!
    if (place.pos >= below || isNewer(place.streamPos, upTo)) continue
    places.push(place)
    if ((since && !isNewer(place.streamPos, since)) || (!wants && places.length > limit)) break
  }
  return places
}

/** Pages of a room's events, newest first: what is in memory, then the rest. */
async function* backwards(
  db: Reader,
  cache: EventCache,
  room: Room,
  wish: TimelineWish,
): AsyncGenerator<readonly RoomEvent[]> {
  const { below = Number.POSITIVE_INFINITY } = wish
  let pos = Math.min(room.timelineFrom, below) - 1
  const places = placesWanted(room, wish)
  if (places.length > 0) yield await room.eventsAt(places)
  const size = wish.below === undefined ? Math.min(PAGE, wish.limit + 1) : PAGE
  while (pos > 0) {
    const rows = await getTimelineBackwards(db, room.nid, 0, pos, size)
    if (rows.length === 0) return
    const page = rows.map((row) => cache.adopt(row))
    if (pos === room.timelineFrom - 1) room.extendTimeline(page.toReversed())
    yield page
    pos = page.at(-1)!.pos - 1
  }
}
