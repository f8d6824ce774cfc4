import type { JsonBytes } from '../../../core/json-bytes.ts'
import { type StateMap, stateBytes } from '../../../core/state/trie.ts'
import { MAX_FIRST_SECTION_BYTES } from '../../limits/answers.ts'
import { writeClientEvent } from '../../rooms/room/client-event.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import type { Look } from '../look.ts'
import { type RoomState, readingOf, sendersOf } from '../room-section.ts'
import type { FirstReading, FirstSection, FirstState, WrittenTimeline } from './readings.ts'
import {
  isCurrent,
  isOnlyForReader,
  jsonBytes,
  knownReading,
  readNow,
  sharesTimelines,
  type TimelineShown,
  timelineFor,
  timelineOf,
} from './timelines.ts'
import { WrittenEvents } from './written-events.ts'

/** Bytes of a state beside its texts, and of each short text or number in it. */
const STATE_BYTES = 300
const ITEM_BYTES = 80
const NUMBER_BYTES = 8
const NOBODY: readonly RoomEvent[] = []

/** Whether it shows all of rooms so. */
function sharesSections(look: Look): boolean {
  const { state } = look.request.filter.room
  return look.since === undefined && state.matchesAll && state.relatedBy === undefined && sharesTimelines(look)
}

/** What of a room's state is shown depends on this much of a request. */
function wishOf({ request }: Look): number {
  return (request.filter.room.state.lazyLoadMembers ? 2 : 0) + (request.stateAfter === undefined ? 0 : 1)
}

/** What another first sync has written of a room, if this reader sees the same. */
export function firstSectionOf(look: Look, room: Room): FirstSection | undefined {
  const { timeline, state } = look.request.filter.room
  if (!sharesSections(look) || !timeline.roomMatches(room.id) || !state.roomMatches(room.id)) return undefined
  return sectionFor(look, room, knownReading(look, room))
}

function sectionFor(look: Look, room: Room, reading: FirstReading | undefined): FirstSection | undefined {
  const timeline = reading && timelineFor(look, room, reading)
  if (timeline === undefined || reading?.state === undefined || reading.wish !== wishOf(look)) return undefined
  return { timeline, state: reading.state }
}

/** What a first sync shows of a room. */
export interface FirstShown extends TimelineShown {
  readonly target: StateMap
  readonly state: RoomState
}

/** The same of a first sync. Gives what is then kept, if this reader sees the same. */
export function keepFirst(look: Look, room: Room, shown: FirstShown): FirstSection | undefined {
  if (!sharesSections(look) || !isCurrent(look, room, shown) || shown.state.left.length > 0) return undefined
  const known = knownReading(look, room)
  const wish = wishOf(look)
  const timeline = known && (known.timeline ?? timelineOf(look, room, shown))
  const state = known?.wish === wish ? (known.state ?? (timeline && stateOf(look, room, timeline, shown))) : undefined
  const reading = { ...readNow(look, room), timeline, wish, state }
  look.sources.firstReadings.set(room.nid, reading)
  return sectionFor(look, room, reading)
}

/** Undefined as for the timeline. */
function stateOf(
  look: Look,
  room: Room,
  timeline: WrittenTimeline,
  { slice, target, state }: FirstShown,
): FirstState | undefined {
  if (state.events.some(isOnlyForReader)) return undefined
  if (timeline.events.bytes + jsonBytes(state.events) > MAX_FIRST_SECTION_BYTES) return undefined
  const senders = sendersOf(room, slice.events)
  const senderNids = sendersMembers(look, room, target, senders)
  const own = new Set(ownMembers(look, state.events, senderNids))
  const common = own.size === 0 ? state.events : state.events.filter((event) => !own.has(event))
  const events = new WrittenEvents(common, readingOf(look))
  // The room may be forgotten before this is.
  const bytes = STATE_BYTES + events.bytes + stateBytes(target) + ITEM_BYTES * senders.length
  return {
    senders,
    target,
    events,
    nids: common.map(({ nid }) => nid),
    senderNids,
    bytes: bytes + NUMBER_BYTES * (common.length + 2 * senderNids.size),
  }
}

/** With members that are loaded lazily, the numbers of the senders' own: every first sync shows them. */
function sendersMembers(look: Look, room: Room, target: StateMap, senders: readonly string[]): ReadonlySet<number> {
  const { lazyLoadMembers } = look.request.filter.room.state
  return new Set(lazyLoadMembers ? senders.map((userId) => room.stateNid(target, 'm.room.member', userId)) : [])
}

/** The state that is shown to one reader and not to all: members that are loaded lazily, without those who sent the timeline. */
export function ownMembers(
  { request }: Look,
  state: readonly RoomEvent[],
  senderNids: ReadonlySet<number>,
): readonly RoomEvent[] {
  if (!request.filter.room.state.lazyLoadMembers) return NOBODY
  return state.filter(({ type, nid }) => type === 'm.room.member' && !senderNids.has(nid))
}

/** Writes the list of a room's state events: those that everybody is shown, and those for this reader. @param own in order of their numbers */
export function writeFirstState(
  out: JsonBytes,
  look: Look,
  { events, nids }: FirstState,
  own: readonly RoomEvent[],
): JsonBytes {
  const reading = readingOf(look)
  let written = 0
  let isFirst = true
  const comma = () => {
    if (!isFirst) out.text(',')
    isFirst = false
  }
  const writeUpTo = (end: number) => {
    if (end === written) return
    comma()
    events.write(out, reading, written, end)
    written = end
  }
  out.text('[')
  for (const event of own) {
    let end = written
    while (end < nids.length && nids[end]! < event.nid) end++
    writeUpTo(end)
    comma()
    writeClientEvent(out, event, reading)
  }
  writeUpTo(nids.length)
  return out.text(']')
}
