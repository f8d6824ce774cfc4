import type { UserId } from '../../../core/ids.ts'
import { type StateMap, stateBytes } from '../../../core/state/trie.ts'
import { MAX_FIRST_SECTION_BYTES } from '../../limits/answers.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import type { Look } from '../look.ts'
import { type RoomState, readingOf } from '../room-section.ts'
import type { FirstReading, FirstState, FirstWritten, WrittenTimeline } from './readings.ts'
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
import { openEvents, WrittenEvents } from './written-events.ts'

/** Bytes of a state beside its texts, and of each sender in it. */
const STATE_BYTES = 300
const SENDER_BYTES = 60
const NOBODY: readonly RoomEvent[] = []

/** Whether it shows all of those rooms so that its filter lets in. */
export function sharesSections(look: Look): boolean {
  const { state } = look.request.filter.room
  return look.since === undefined && state.matchesAll && state.relatedBy === undefined && sharesTimelines(look)
}

/** Whether it shows all of a room so. */
export function sharesSection(look: Look, room: Room): boolean {
  const { timeline, state } = look.request.filter.room
  return sharesSections(look) && timeline.roomMatches(room.id) && state.roomMatches(room.id)
}

/** What of a room's state is shown depends on this much of a request. */
export function wishOf({ request }: Look): number {
  return (request.filter.room.state.lazyLoadMembers ? 2 : 0) + (request.stateAfter === undefined ? 0 : 1)
}

/** What is written of a room for first syncs, if this reader sees the same, and needs no event of the timeline to be shown the state. */
export function firstWritten(look: Look, room: Room): FirstWritten | undefined {
  const written = sharesSection(look, room) ? writtenFor(look, room, knownReading(look, room)) : undefined
  return written?.state || written?.timeline.isStill ? written : undefined
}

function writtenFor(look: Look, room: Room, reading: FirstReading | undefined): FirstWritten | undefined {
  const timeline = reading && timelineFor(look, room, reading)
  return timeline && { timeline, state: reading.wish === wishOf(look) ? reading.state : undefined, reading }
}

/** What a first sync shows of a room. */
export interface FirstShown extends TimelineShown {
  readonly target: StateMap
  readonly state: RoomState
}

/** The same of a first sync. Gives what is then kept, if this reader sees the same. */
export function keepFirst(look: Look, room: Room, shown: FirstShown): FirstWritten | undefined {
  if (!sharesSection(look, room) || !isCurrent(look, room, shown) || shown.state.left.length > 0) return undefined
  const known = knownReading(look, room)
  const wish = wishOf(look)
  const timeline = known && (known.timeline ?? timelineOf(look, room, shown))
  const state = known?.wish === wish ? (known.state ?? (timeline && stateOf(look, room, timeline, shown))) : undefined
  const reading: FirstReading = { ...readNow(look, room), timeline, wish, state }
  look.sources.firstReadings.set(room.nid, reading)
  return writtenFor(look, room, reading)
}

/** Notes which state a first sync has shown with such a timeline. The second one of the same writes it for others too, and gets that. */
export function keepState(
  look: Look,
  room: Room,
  timeline: WrittenTimeline,
  shown: Pick<FirstShown, 'target' | 'state'>,
): FirstState | undefined {
  const known = knownReading(look, room)
  if (known?.timeline !== timeline) return undefined
  const wish = wishOf(look)
  const state = known.wish === wish ? (known.state ?? stateOf(look, room, timeline, shown)) : undefined
  look.sources.firstReadings.set(room.nid, { ...known, wish, state, opening: undefined })
  return state
}

/** Undefined as for the timeline. */
function stateOf(
  look: Look,
  room: Room,
  timeline: WrittenTimeline,
  { target, state }: Pick<FirstShown, 'target' | 'state'>,
): FirstState | undefined {
  if (state.events.some(isOnlyForReader)) return undefined
  if (timeline.events.jsonBytes + jsonBytes(state.events) > MAX_FIRST_SECTION_BYTES) return undefined
  const senders = sendersMembers(look, room, target, timeline.senders)
  const own = new Set(ownMembers(look, state.events, senders))
  const common = own.size === 0 ? state.events : state.events.filter((event) => !own.has(event))
  const events = new WrittenEvents(openEvents(common, readingOf(look)), look.timeMs)
  return firstStateOf({ target, events, senders, isNamed: false })
}

export function firstStateOf(state: Omit<FirstState, 'bytes'>): FirstState {
  // The room may be forgotten before this is.
  return { ...state, bytes: STATE_BYTES + stateBytes(state.target) + SENDER_BYTES * state.senders.size }
}

/** With members that are loaded lazily, the numbers of the senders' own: every first sync shows them. */
export function sendersMembers(
  look: Look,
  room: Room,
  target: StateMap,
  senders: readonly UserId[],
): ReadonlyMap<UserId, number> {
  const members = new Map<UserId, number>()
  if (!look.request.filter.room.state.lazyLoadMembers) return members
  for (const userId of senders) {
    const nid = room.stateNid(target, 'm.room.member', userId)
    if (nid !== 0) members.set(userId, nid)
  }
  return members
}

/** The state that is shown to one reader and not to all: members that are loaded lazily, without those who sent the timeline. */
export function ownMembers(
  { request }: Look,
  state: readonly RoomEvent[],
  senders: ReadonlyMap<UserId, number>,
): readonly RoomEvent[] {
  if (!request.filter.room.state.lazyLoadMembers) return NOBODY
  const theirs = new Set(senders.values())
  return state.filter(({ type, nid }) => type === 'm.room.member' && !theirs.has(nid))
}
