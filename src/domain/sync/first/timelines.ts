import type { JsonBytes } from '../../../core/json-bytes.ts'
import { MAX_FIRST_SECTION_BYTES } from '../../limits/answers.ts'
import { alwaysJoined, type Bundles } from '../../rooms/room/client-event.ts'
import type { Head } from '../../rooms/room/head.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import type { Look } from '../look.ts'
import { afterEvents, type EventExtras, readingOf, sendersOf } from '../room-section.ts'
import type { TimelineSlice } from '../room-timeline.ts'
import { limitOf } from '../shown-timeline.ts'
import { isNewer } from '../token.ts'
import type { FirstReading, WrittenTimeline } from './readings.ts'
import { openEvents, WrittenEvents } from './written-events.ts'

/** Of two people, the second would write for nobody. */
const FEWEST_MEMBERS = 3

/** Whether this look shows the timelines of rooms as others may see them too. */
export function sharesTimelines({ request, ignored, sources }: Look): boolean {
  const { filter, lostAfter } = request
  const { timeline } = filter.room
  if (lostAfter !== undefined || ignored !== undefined || sources.lifetimes !== undefined) return false
  if (!timeline.matchesAll || timeline.relatedBy !== undefined) return false
  return filter.eventFields === undefined && filter.eventFormat === 'client'
}

/** What others have read of this room, if it is what this look would read. */
export function knownReading(look: Look, { nid, committed, purgedTo }: Room): FirstReading | undefined {
  const known = look.sources.firstReadings.get(nid)
  if (known?.version !== committed.version || known.purgedTo !== purgedTo) return undefined
  return known.limit === limitOf(look) && !isNewer(committed.nid, look.now.events) ? known : undefined
}

/** Undefined for a reader who came later than what it shows. */
export function timelineFor({ by }: Look, room: Room, { timeline }: FirstReading): WrittenTimeline | undefined {
  const seesFrom = room.localMembers.get(by.userNid)?.since ?? Number.POSITIVE_INFINITY
  return timeline !== undefined && timeline.oldest >= seesFrom ? timeline : undefined
}

/** What a look shows of a room's timeline. */
export interface TimelineShown {
  /** The room's head when that was read. */
  readonly head: Head
  readonly slice: TimelineSlice
  readonly extras: EventExtras
}

/** Notes what a look after a gap has read. The second one of the same writes it for others too. References of the events must be loaded. */
export function keepTimeline(look: Look, room: Room, shown: TimelineShown): void {
  if (!shown.slice.limited || room.localMembers.size < FEWEST_MEMBERS) return
  if (!sharesTimelines(look) || !isCurrent(look, room, shown)) return
  const known = knownReading(look, room)
  const timeline = known && (known.timeline ?? timelineOf(look, room, shown))
  look.sources.firstReadings.set(room.nid, {
    ...readNow(look, room),
    timeline,
    wish: known?.wish,
    state: known?.state,
    opening: known?.opening,
  })
}

export const readNow = (look: Look, { committed, purgedTo }: Room) => ({
  version: committed.version,
  purgedTo,
  limit: limitOf(look),
})

/** Whether it is what everybody would be shown now who was in the room by then. */
export function isCurrent(look: Look, room: Room, { head, slice, extras }: TimelineShown): boolean {
  if (extras.membershipAt !== alwaysJoined || head !== room.committed || !room.alive) return false
  return !isNewer(head.nid, look.now.events) && isWhole(look, room, slice)
}

/** As servers exchange them, which is longer than what clients are shown. */
export function jsonBytes(events: readonly RoomEvent[]): number {
  let bytes = 0
  for (const { json } of events) bytes += json.length
  return bytes
}

/**
 * Whether a timeline has all of a room's newest events: somebody who came later may be shown less than others are. History that is being
 * removed is read again each time.
 */
function isWhole(look: Look, room: Room, { events }: TimelineSlice): boolean {
  const [oldest, newest] = [events[0], events.at(-1)]
  if (!oldest || !newest || events.length !== limitOf(look) || oldest.pos <= room.purgedTo) return false
  return newest.pos === room.committed.pos && newest.pos - oldest.pos + 1 === events.length
}

export const isOnlyForReader = ({ isCopy, rendered }: RoomEvent): boolean => isCopy || rendered?.isSticky !== false

/** Undefined if it is too large to keep, or if some who were there see something else. */
export function timelineOf(look: Look, room: Room, { slice, extras }: TimelineShown): WrittenTimeline | undefined {
  const { events, limited } = slice
  if (events.some(isOnlyForReader)) return undefined
  const bundled = look.sources.sharedBundles.forMembers(room, limited ? events : [])
  if (bundled === undefined || jsonBytes(events) + bundled.bytes > MAX_FIRST_SECTION_BYTES) return undefined
  const [oldest] = events as readonly [RoomEvent]
  const reading = readingOf(look, { ...extras, relations: bundled.bundles })
  const written = new WrittenEvents(openEvents(events, reading), look.timeMs)
  return {
    events: written,
    limited,
    before: oldest.pos - 1,
    oldest: bundled.children.reduce((least, { streamPos }) => Math.min(least, streamPos), oldest.streamPos),
    threads: written.threads,
    senders: sendersOf(room, events),
    isStill: false,
  }
}

/** What others have written of the events that a look after a gap shows of a room, if this reader sees the same. */
function writtenTimelineOf(look: Look, room: Room, slice: TimelineSlice): WrittenTimeline | undefined {
  if (!slice.limited || !sharesTimelines(look) || !isWhole(look, room, slice)) return undefined
  const known = knownReading(look, room)
  return known && timelineFor(look, room, known)
}

/** A timeline that others have written, and the threads in which this reader has a part, by the numbers of their roots. */
export interface TimelineFor {
  readonly timeline: WrittenTimeline
  readonly parts: ReadonlySet<number>
}

/** What others have written of a timeline, if this reader sees the same. */
export function sharedTimeline(
  look: Look,
  room: Room,
  slice: TimelineSlice,
): TimelineFor | undefined | Promise<TimelineFor | undefined> {
  const timeline = writtenTimelineOf(look, room, slice)
  return timeline && withParts(look, room, timeline)
}

/** Undefined where memory does not say in which threads the reader has a part. */
export function withParts(
  look: Look,
  room: Room,
  timeline: WrittenTimeline,
): TimelineFor | undefined | Promise<TimelineFor | undefined> {
  const knowing = look.sources.sharedBundles.partsOf(look.by, room, timeline.threads)
  const known = (parts: ReadonlySet<number> | undefined) => parts && { timeline, parts }
  return knowing instanceof Promise ? knowing.then(known) : known(knowing)
}

export function writeWritten(out: JsonBytes, look: Look, { timeline, parts }: TimelineFor): void {
  out.text('{"events":[')
  timeline.events.write(out, { ...readingOf(look), parts })
  out.text(`]${afterEvents(timeline.limited, timeline.before)}`)
}

/** The threads in which a reader has a part, among what is bundled for them. */
export function partsIn(relations: Bundles | undefined): ReadonlySet<number> {
  const parts = new Set<number>()
  for (const [rootNid, { thread }] of relations ?? []) if (thread?.participated) parts.add(rootNid)
  return parts
}
