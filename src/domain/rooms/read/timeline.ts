import type { RelatedBy } from '../../../core/filter.ts'
import type { Database } from '../../../store/db/db.ts'
import { type EventRow, getTimelineBackwards, getTimelineForwards } from '../../../store/events/events.ts'
import type { Clock } from '../../clock.ts'
import { MAX_EVENT_PAGE_BYTES } from '../../limits/answers.ts'
import { MAX_FILLS_PER_REQUEST, MAX_HISTORY_WAIT_MS } from '../../limits.ts'
import type { Backfill, GapOutcome, Opening } from '../backfill/backfill.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import { RoomEvent } from '../room/room-event.ts'
import type { Viewer } from '../room/viewer.ts'
import type { KeepRelated } from './related.ts'

export type Direction = 'b' | 'f'

/** Events of a room with `after < pos <= upTo`: newest first going backwards, oldest first going forwards. */
export interface Stretch {
  readonly room: Room
  readonly direction: Direction
  readonly after: number
  readonly upTo: number
  /** Whether to ask other servers for missing events, for a limited time. */
  readonly isFilled?: boolean
}

export interface Page {
  readonly events: readonly RoomEvent[]
  /** The position from which to go on; undefined when nothing is left in this direction. */
  readonly next: number | undefined
}

/** Bytes of events that an answer may still have. Pages of one answer share it. */
export interface PageBudget {
  left: number
}

export interface Timeline {
  /**
   * Up to `limit` events that the viewer may see and that pass `wants`, and fewer where they are too long for the budget: the first one fits
   * in any case. A page may be empty and still not be the last.
   */
  page(
    viewer: Viewer,
    stretch: Stretch,
    limit: number,
    wants: (event: RoomEvent) => boolean,
    relatedBy?: RelatedBy,
    budget?: PageBudget,
  ): Promise<Page>
}

/** Lower than any event, wherever backfilled history may begin. */
export const BEGINNING = -(2 ** 50)

/** How many events one request searches for those that it wants. */
const MAX_SCANNED = 2_000
/** The smallest batch after the first, and the largest while it is not known how long events are. */
const MIN_BATCH = 100
const FIRST_BATCH = 65

export function createTimeline(parts: {
  readonly db: Database
  readonly events: EventCache
  readonly access: RoomAccess
  readonly clock: Clock
  readonly backfill: Pick<Backfill, 'fill'>
  readonly keepRelated: KeepRelated
}): Timeline {
  const { db, events, access, clock, backfill, keepRelated } = parts
  /** For what is further back than a room in memory reaches. */
  const replicas = db.replicas?.caughtUp(db)
  /** It does not go into the cache: it would displace what others read, and a redaction may come while it is on its way. */
  const uncached = (row: EventRow): RoomEvent => events.get(row.event_nid) ?? new RoomEvent(row)

  async function read({ room, direction, after, upTo }: Stretch, count: number): Promise<readonly RoomEvent[]> {
    const kept = room.timeline.between(after, upTo)
    if (replicas !== undefined && kept.length === 0) {
      const readRows = direction === 'f' ? getTimelineForwards : getTimelineBackwards
      return (await readRows(replicas, room.nid, after, upTo, count)).map(uncached)
    }
    if (direction === 'f') {
      if (kept.length > 0 && kept[0]!.pos === after + 1) return room.eventsAt(kept.slice(0, count))
      const rows = await getTimelineForwards(db, room.nid, after, upTo, count)
      return rows.map((row) => events.adopt(row))
    }
    const newest = kept.at(-1)?.pos === upTo ? await room.eventsAt(kept.reverse().slice(0, count)) : []
    const missing = count - newest.length
    const below = newest.at(-1)?.pos ?? upTo + 1
    if (missing === 0 || below - 1 <= after) return newest
    const rows = await getTimelineBackwards(db, room.nid, after, below - 1, missing)
    const older = rows.map((row) => events.adopt(row))
    if (below === room.timelineFrom) room.extendTimeline(older.toReversed())
    return [...newest, ...older]
  }

  async function page(
    viewer: Viewer,
    wish: Stretch,
    limit: number,
    wants: (event: RoomEvent) => boolean,
    relatedBy?: RelatedBy,
    budget: PageBudget = { left: MAX_EVENT_PAGE_BYTES },
  ): Promise<Page> {
    // Nobody pages through what was removed, and nothing of it is fetched again.
    const stretch = { ...wish, after: Math.max(wish.after, wish.room.purgedTo) }
    if (stretch.after >= stretch.upTo) return { events: [], next: undefined }
    const choose = async (events: readonly RoomEvent[]) => {
      const wanted = (await access.visibleTo(viewer, stretch.room, events)).filter(wants)
      return relatedBy ? keepRelated(viewer, stretch.room, wanted, relatedBy) : wanted
    }
    const found: RoomEvent[] = []
    const fill = stretch.isFilled ? backfillFor(stretch.room) : undefined
    let rest: Stretch = stretch
    let scanned = 0
    let scannedBytes = 0
    while (scanned < MAX_SCANNED) {
      // One more than wanted, to see whether there are more.
      const wished = Math.max(limit - found.length + 1, scanned === 0 ? 0 : MIN_BATCH)
      const size = Math.min(wished, batchOf(scanned, scannedBytes))
      const events = await read(rest, size)
      const isLast = events.length < size
      const gap = fill && gapIn(rest, events, isLast)
      const batch = gap ? events.filter((event) => isBefore(gap, event, rest)) : events
      for (const event of await choose(batch)) {
        const isFull = found.length > 0 && event.json.length > budget.left
        if (found.length === limit || isFull) return { events: found, next: positionAfter(found.at(-1), stretch) }
        found.push(event)
        budget.left -= event.json.length
      }
      scanned += batch.length
      for (const { json } of batch) scannedBytes += json.length
      const last = batch.at(-1)
      if (fill && gap) {
        const outcome = found.length < limit ? await fill(gap) : 'underway'
        const next = afterGap(rest, gap, outcome, found, isLast)
        if ('events' in next) return next
        rest = next
      } else if (!last || isLast) return { events: found, next: undefined }
      else rest = from(rest, positionAfter(last, stretch))
    }
    return { events: found, next: stretch.direction === 'b' ? rest.upTo : rest.after }
  }

  /** Fills gaps for one request, until it has taken long enough. */
  function backfillFor(room: Room): (gap: Opening) => Promise<GapOutcome> {
    const end = clock.now() + MAX_HISTORY_WAIT_MS
    let fills = 0
    return async (gap) => {
      const waitMs = end - clock.now()
      const isOver = waitMs <= 0 || fills >= MAX_FILLS_PER_REQUEST
      const outcome = isOver ? 'underway' : await backfill.fill(room, gap, waitMs)
      if (outcome === 'filled') fills++
      return outcome
    }
  }

  return { page }
}

/** How many events to read at once, so that long ones do not fill the memory. */
function batchOf(scanned: number, bytes: number): number {
  if (scanned === 0) return FIRST_BATCH
  return Math.max(1, Math.floor((MAX_EVENT_PAGE_BYTES * scanned) / Math.max(1, bytes)))
}

/**
 * The first gap in a stretch that was read: elsewhere positions are consecutive. A reader who goes forwards from the beginning starts at
 * the first known event.
 */
function gapIn(
  { direction, upTo, after }: Stretch,
  events: readonly RoomEvent[],
  isLast: boolean,
): Opening | undefined {
  if (direction === 'f') {
    let below = after
    for (const { pos } of events) {
      if (pos - below > 1 && below !== BEGINNING) return { from: pos, below }
      below = pos
    }
    return undefined
  }
  let from = upTo + 1
  for (const { pos } of events) {
    if (from - pos > 1) return { from, below: pos }
    from = pos
  }
  const isBeginning = events.at(-1)?.type === 'm.room.create'
  return isLast && !isBeginning && from - after > 1 ? { from, below: after } : undefined
}

function isBefore({ from, below }: Opening, { pos }: RoomEvent, { direction }: Stretch): boolean {
  return direction === 'b' ? pos >= from : pos <= below
}

/** What is left to read after an attempt to fill a gap, or the page that ends at the gap. */
function afterGap(
  rest: Stretch,
  { from: above, below }: Opening,
  outcome: GapOutcome,
  found: readonly RoomEvent[],
  isLast: boolean,
): Stretch | Page {
  const isBackwards = rest.direction === 'b'
  const resume = isBackwards ? above - 1 : below
  if (outcome === 'filled') return from(rest, resume)
  if (outcome === 'underway' && (isBackwards || found.length > 0)) return { events: found, next: resume }
  // A client that gets an empty page with its own position takes that for the end. So it gets the next position, which is free too, because
  // gaps are filled from above.
  if (outcome === 'underway' && above - below > 2) return { events: found, next: below + 1 }
  // A client that got events may ask again, when other servers may answer.
  if (isBackwards && isLast && below === rest.after)
    return { events: found, next: outcome === 'unfilled' && found.length > 0 ? resume : undefined }
  return from(rest, isBackwards ? below : above - 1)
}

/** The rest of a stretch. */
function from(stretch: Stretch, position: number): Stretch {
  return stretch.direction === 'b' ? { ...stretch, upTo: position } : { ...stretch, after: position }
}

/** The position after an event, or the start when there was none. */
function positionAfter(event: RoomEvent | undefined, { direction, after, upTo }: Stretch): number {
  if (!event) return direction === 'b' ? upTo : after
  return direction === 'b' ? event.pos - 1 : event.pos
}
