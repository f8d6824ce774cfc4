import type { Reader } from '../../store/db/db.ts'
import { getTimelineBackwards } from '../../store/events/events.ts'
import { MAX_TIMELINE_BYTES } from '../limits.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { Place } from '../rooms/room/recent/places.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { type EventPosition, isNewer } from './token.ts'

export interface TimelineWish {
  /** Give only what a reader at this position has not seen. */
  readonly since: EventPosition | undefined
  /** Give nothing that was committed after this. */
  readonly upTo: EventPosition
  readonly limit: number
  readonly wants: ((event: RoomEvent) => boolean) | undefined
  /** Give only what lies below this timeline position, to continue an earlier slice. */
  readonly below?: number
}

export interface TimelineSlice {
  /** Oldest first. */
  readonly events: readonly RoomEvent[]
  /** Whether there are more events after `since` than these. */
  readonly limited: boolean
}

export interface RawSlice extends TimelineSlice {
  /** The position at which the events that the limit cut off continue. */
  readonly rest?: number
}

export const PAGE = 64
/** How far back one sync searches for events that pass a filter and that its reader may see. */
export const MAX_EVENTS_SCANNED = 640

/** The newest events of a room: synchronous where memory reaches far enough back, otherwise also from the database. */
export function readTimeline(
  db: Reader,
  cache: EventCache,
  room: Room,
  wish: TimelineWish,
): RawSlice | Promise<RawSlice> {
  const reading = new TimelineReading(wish)
  const { timeline } = room
  for (let index = timeline.length - 1; index >= 0; index--) {
    const place = timeline.at(index)
    if (!reading.looksAt(place)) continue
    const event = room.fact(place.nid)
    if (event === undefined) return readLoaded(db, cache, room, wish)
    const slice = reading.take(event)
    if (slice) return slice
  }
  return readOlder(db, cache, room, reading)
}

/** The same where some of the newest events are in the database only. */
async function readLoaded(db: Reader, cache: EventCache, room: Room, wish: TimelineWish): Promise<RawSlice> {
  const reading = new TimelineReading(wish)
  for (const event of await room.eventsAt(placesWanted(room, wish))) {
    const slice = reading.take(event)
    if (slice) return slice
  }
  return readOlder(db, cache, room, reading)
}

/** Continues before the events in memory. */
async function readOlder(db: Reader, cache: EventCache, room: Room, reading: TimelineReading): Promise<RawSlice> {
  const { below = Number.POSITIVE_INFINITY, limit } = reading.wish
  const size = reading.wish.below === undefined ? Math.min(PAGE, limit + 1) : PAGE
  for (let pos = Math.min(room.timelineFrom, below) - 1; pos > 0; ) {
    const rows = await getTimelineBackwards(db, room.nid, 0, pos, size)
    if (rows.length === 0) break
    const page = rows.map((row) => cache.adopt(row))
    if (pos === room.timelineFrom - 1) room.extendTimeline(page.toReversed())
    for (const event of page) {
      const slice = reading.take(event)
      if (slice) return slice
    }
    pos = page.at(-1)!.pos - 1
  }
  return reading.atBeginning()
}

/** Collects a slice from a room's events, which come newest first. */
class TimelineReading {
  readonly wish: TimelineWish
  readonly #found: RoomEvent[] = []
  #scanned = 0
  #bytes = 0
  /** The position of the event that was read before. */
  #laterPos: number | undefined

  constructor(wish: TimelineWish) {
    this.wish = wish
    this.#laterPos = wish.below
  }

  /** Whether an event at this place may be part of the slice, or end it. */
  looksAt({ pos, streamPos }: Place): boolean {
    const { below, upTo } = this.wish
    return (below === undefined || pos < below) && !isNewer(streamPos, upTo)
  }

  /** Takes the next older event. Returns the slice, once it is whole. */
  take(event: RoomEvent): RawSlice | undefined {
    const { upTo, since, wants, limit } = this.wish
    this.#scanned++
    // Clients paginate backwards for backfilled history.
    if (event.isHistory) return this.#slice(true)
    if (isNewer(event.streamPos, upTo)) return undefined
    // They also paginate backwards for missing events in between.
    if (this.#laterPos !== undefined && this.#laterPos - event.pos > 1) return this.#slice(true)
    if (since && !isNewer(event.streamPos, since)) return this.#slice(false)
    if (!wants || wants(event)) {
      if (this.#found.length === limit) return { ...this.#slice(true), rest: event.pos + 1 }
      if (this.#found.length > 0 && this.#bytes + event.json.length > MAX_TIMELINE_BYTES) return this.#slice(true)
      this.#bytes += event.json.length
      this.#found.push(event)
      // Before any event but the very first one is another one, or a gap.
      const isMore = !since && !wants && this.#found.length === limit && event.pos > 1
      if (isMore) return { ...this.#slice(true), rest: event.pos }
    }
    this.#laterPos = event.pos
    return this.#scanned >= MAX_EVENTS_SCANNED ? this.#slice(true) : undefined
  }

  /** There is no older event. A room that was joined through another server begins with a gap. */
  atBeginning(): RawSlice {
    return this.#slice(this.#laterPos !== undefined && this.#laterPos > 1)
  }

  #slice(limited: boolean): RawSlice {
    return { events: this.#found.reverse(), limited }
  }
}

/** Places to look at, newest first: as far as a sync that is nearly up to date needs. */
function placesWanted({ timeline }: Room, wish: TimelineWish): Place[] {
  const { since, limit, wants } = wish
  const reading = new TimelineReading(wish)
  const places: Place[] = []
  for (let index = timeline.length - 1; index >= 0; index--) {
    const place = timeline.at(index)
    if (!reading.looksAt(place)) continue
    places.push(place)
    if ((since && !isNewer(place.streamPos, since)) || (!wants && places.length > limit)) break
  }
  return places
}
