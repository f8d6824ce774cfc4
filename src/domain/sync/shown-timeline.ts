import type { EventMatcher } from '../../core/filter.ts'
import { type Ignored, isIgnored } from '../rooms/read/ignored-users.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import type { Look } from './look.ts'
import {
  MAX_EVENTS_SCANNED,
  PAGE,
  type RawSlice,
  readTimeline,
  type TimelineSlice,
  type TimelineWish,
} from './room-timeline.ts'
import { isNewer } from './token.ts'

const DEFAULT_TIMELINE = 10
const MAX_TIMELINE = 1000

/** What a reader may see of a room's timeline, before the filter applies. */
export interface Stretch extends Pick<TimelineWish, 'since' | 'upTo' | 'below'> {
  /** The reader may see everything from this stream position on. */
  readonly seesFrom: number
}

/** The newest events of a room that the reader wants and may see. It skips what history visibility hides, and continues before that. */
export function shownTimeline(look: Look, room: Room, stretch: Stretch): TimelineSlice | Promise<TimelineSlice> {
  const { timeline: filter } = look.request.filter.room
  if (!filter.roomMatches(room.id)) return { events: [], limited: false }
  const limit = limitOf(look)
  const first = readWanted(look, room, { ...stretch, limit: filter.relatedBy ? Math.max(limit, PAGE) : limit })
  if (first instanceof Promise) return first.then((slice) => shownOf(look, room, stretch, slice))
  return shownOf(look, room, stretch, first)
}

/** What the reader sees of the first slice, or if that is hidden, of what comes before it. */
function shownOf(look: Look, room: Room, stretch: Stretch, first: RawSlice): TimelineSlice | Promise<TimelineSlice> {
  const { relatedBy } = look.request.filter.room.timeline
  const oldest = first.events[0]
  if (!oldest || (oldest.streamPos >= stretch.seesFrom && !relatedBy && isFresh(look, first))) return first
  return passOverHidden(look, room, stretch, first)
}

/** Whether all of it is too new to be hidden by its age. */
function isFresh({ sources: { lifetimes } }: Look, { events }: RawSlice): boolean {
  if (lifetimes === undefined) return true
  const horizon = lifetimes.horizon()
  return events.every(({ ts }) => ts > horizon)
}

async function passOverHidden(look: Look, room: Room, stretch: Stretch, first: RawSlice): Promise<TimelineSlice> {
  const { relatedBy } = look.request.filter.room.timeline
  const visible = await look.sources.visibleTo(look.by, room, first.events)
  if (!relatedBy && visible.length === first.events.length) return { events: visible, limited: first.limited }
  const limit = limitOf(look)
  const read = (below: number) => readWanted(look, room, { ...stretch, below, limit: Math.max(limit, PAGE) })
  return passOver(look, room, first, { limit, read })
}

function readWanted(look: Look, room: Room, wish: Omit<TimelineWish, 'wants'>): RawSlice | Promise<RawSlice> {
  const { sources, request } = look
  const { timeline: filter } = request.filter.room
  const wants = wantsOf(filter, look.ignored)
  return readTimeline(sources.db, sources.events, room, { ...wish, wants })
}

/** Whether the first events that are read are those that are shown, unless some are hidden. */
export function wantsAll({ request, since, ignored }: Look): boolean {
  const { timeline: filter } = request.filter.room
  return since === undefined && filter.relatedBy === undefined && wantsOf(filter, ignored) === undefined
}

/** Undefined if every event is wanted. */
function wantsOf(filter: EventMatcher, ignored: Ignored | undefined): ((event: RoomEvent) => boolean) | undefined {
  if (filter.matchesAll && ignored === undefined) return undefined
  return (event) => {
    if (ignored && isIgnored(event, ignored)) return false
    const { type, sender, content } = event
    return filter.eventMatches({ type, sender, content })
  }
}

/** How many events of a timeline a look shows at most. */
export function limitOf({ request }: Look): number {
  return Math.min(Math.max(0, request.filter.room.timeline.limit ?? DEFAULT_TIMELINE), MAX_TIMELINE)
}

/** Whether the filter lets an event into a timeline. */
export function isWanted(look: Look, room: Room, { type, sender, content }: RoomEvent): boolean {
  const { timeline: filter } = look.request.filter.room
  if (filter.relatedBy || !filter.roomMatches(room.id)) return false
  return limitOf(look) > 0 && filter.eventMatches({ type, sender, content })
}

interface Reading {
  readonly limit: number
  read(below: number): RawSlice | Promise<RawSlice>
}

/** Continues from a slice as long as its events are hidden, or lack the relations that the filter asks for. */
async function passOver(look: Look, room: Room, first: RawSlice, { limit, read }: Reading): Promise<TimelineSlice> {
  const { visibleTo, mayShowUpTo, keepRelated } = look.sources
  const { relatedBy } = look.request.filter.room.timeline
  const shown = new ShownPart(limit)
  let scanned = 0
  for (let slice = first; ; ) {
    const visible = await visibleTo(look.by, room, slice.events)
    const wanted = relatedBy ? await keepRelated(look.by, room, visible, relatedBy) : visible
    if (!shown.take(slice.events, visible, wanted)) return shown.slice(true)
    scanned += slice.events.length
    const oldest = slice.events[0]
    const isOver = slice.rest === undefined || shown.isFull || scanned >= MAX_EVENTS_SCANNED
    if (!oldest || isOver) return shown.slice(slice.limited)
    const open = await mayShowUpTo(look.by, room, oldest.pos - 1)
    if (open === undefined) return shown.slice(false)
    // Clients get backfilled history by paginating backwards.
    if (open <= 0) return shown.slice(true)
    slice = await read(Math.min(slice.rest!, open + 1))
  }
}

/** Collects the events to show, from the newest back. */
class ShownPart {
  readonly #limit: number
  readonly #events: RoomEvent[] = []
  readonly #shown = new Set<number>()
  /** State keys that a hidden event set after all events shown so far. */
  readonly #hidden = new Set<number>()

  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Takes the wanted ones of some visible events, oldest first. Returns false when there are more than the limit allows, or when the next
   * event would set a state key that a hidden event set again later: the reader would be left with outdated state.
   */
  take(events: readonly RoomEvent[], visible: readonly RoomEvent[], wanted: readonly RoomEvent[]): boolean {
    const seen = new Set(visible.map(({ nid }) => nid))
    const taken = new Map(wanted.map((event) => [event.nid, event]))
    for (const { nid, keyId } of events.toReversed()) {
      if (!seen.has(nid) && keyId !== undefined && !this.#shown.has(keyId)) this.#hidden.add(keyId)
      const event = taken.get(nid)
      if (!event) continue
      if (this.#events.length === this.#limit || (keyId !== undefined && this.#hidden.has(keyId))) return false
      if (keyId !== undefined) this.#shown.add(keyId)
      this.#events.push(event)
    }
    return true
  }

  get isFull(): boolean {
    return this.#events.length >= this.#limit
  }

  slice(limited: boolean): TimelineSlice {
    return { events: this.#events.toReversed(), limited }
  }
}

/** How many notifiable events a room had at the end of a look. */
export function notifiableAt(look: Look, room: Room): number {
  const newest = room.timeline.findLast((event) => !isNewer(event.streamPos, look.now.events))
  return newest?.notifiable ?? room.committed.notifiable
}
