import { JsonBytes } from '../../core/json-bytes.ts'
import { alwaysJoined, isMarkedFor } from '../rooms/room/client-event.ts'
import type { Room } from '../rooms/room/room.ts'
import type { Look } from './look.ts'
import { type EventExtras, writeEventList } from './room-section.ts'
import type { TimelineSlice } from './room-timeline.ts'
import { type FirstReading, type FirstTimeline, SHARED_FOR_MS } from './shared-stretches.ts'
import { limitOf } from './shown-timeline.ts'
import { isNewer } from './token.ts'

const TIMELINE_BYTES = 200

/** Whether this look shows the newest events of rooms as others may see them too. */
function isShared({ request, since, ignored, sources }: Look): boolean {
  const { filter, lostAfter } = request
  const { matchesAll, relatedBy } = filter.room.timeline
  if (since !== undefined || lostAfter !== undefined || ignored !== undefined) return false
  if (!matchesAll || relatedBy !== undefined || sources.lifetimes !== undefined) return false
  return filter.eventFields === undefined && filter.eventFormat === 'client'
}

/** What first syncs have just read of this room, if it is what this one would read. */
function readingOf(look: Look, room: Room): FirstReading | undefined {
  const known = look.sources.firstReadings.get(room.nid)
  if (known === undefined || look.timeMs - known.madeAt >= SHARED_FOR_MS) return undefined
  if (known.headNid !== room.committed.nid || isNewer(known.headNid, look.now.events)) return undefined
  return known.purgedTo === room.purgedTo && known.limit === limitOf(look) ? known : undefined
}

/** A room's timeline as another first sync has just read and written it, if this reader sees the same. */
export function firstTimelineOf(look: Look, room: Room): FirstTimeline | undefined {
  if (!isShared(look) || !look.request.filter.room.timeline.roomMatches(room.id)) return undefined
  const timeline = readingOf(look, room)?.timeline
  if (timeline === undefined) return undefined
  const seesFrom = room.localMembers.get(look.by.userNid)?.since ?? Number.POSITIVE_INFINITY
  const [oldest] = timeline.slice.events
  if (oldest!.streamPos < seesFrom || timeline.marked.some((event) => isMarkedFor(event, look.by))) return undefined
  return timeline
}

/** Keeps what a first sync has read, for others who begin at the same time. References of the events must be loaded. */
export function keepFirstTimeline(look: Look, room: Room, slice: TimelineSlice, more: EventExtras): void {
  const { events } = slice
  if (more.membershipAt !== alwaysJoined || more.relations !== undefined || !isShared(look)) return
  if (!isWhole(look, room, slice) || isNewer(room.committed.nid, look.now.events)) return
  if (events.some((event) => event.isCopy || isMarkedFor(event, look.by))) return
  const isSecond = readingOf(look, room) !== undefined
  look.sources.firstReadings.set(room.nid, {
    madeAt: look.timeMs,
    headNid: room.committed.nid,
    purgedTo: room.purgedTo,
    limit: limitOf(look),
    timeline: isSecond ? firstTimeline(look, slice) : undefined,
  })
}

/** Whether a timeline has all of a room's newest events: somebody who came later may be shown less than others are. */
function isWhole(look: Look, room: Room, { events }: TimelineSlice): boolean {
  const [oldest, newest] = [events[0], events.at(-1)]
  if (!oldest || !newest || events.length !== limitOf(look)) return false
  return newest.pos === room.committed.pos && newest.pos - oldest.pos + 1 === events.length
}

function firstTimeline(look: Look, slice: TimelineSlice): FirstTimeline {
  const { events } = slice
  const json = writeEventList(new JsonBytes(), look, events, { membershipAt: alwaysJoined }).toBuffer()
  let bytes = TIMELINE_BYTES + json.length
  for (const event of events) bytes += event.bytes
  return { slice, json, marked: events.filter(({ txnToken }) => txnToken !== undefined), bytes }
}
