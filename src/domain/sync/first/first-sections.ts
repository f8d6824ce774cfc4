import type { JsonBytes } from '../../../core/json-bytes.ts'
import { type StateMap, stateBytes } from '../../../core/state/trie.ts'
import { MAX_FIRST_SECTION_BYTES } from '../../limits/answers.ts'
import { alwaysJoined, writeClientEvent } from '../../rooms/room/client-event.ts'
import type { Head } from '../../rooms/room/head.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import type { Look } from '../look.ts'
import { type EventExtras, type RoomState, readingOf, sendersOf } from '../room-section.ts'
import type { TimelineSlice } from '../room-timeline.ts'
import { limitOf } from '../shown-timeline.ts'
import { isNewer } from '../token.ts'
import type { FirstReading, FirstSection } from './readings.ts'
import { WrittenEvents } from './written-events.ts'

/** Bytes of a section beside its texts and its state, and of each short text or number in it. */
const SECTION_BYTES = 500
const ITEM_BYTES = 80
const NUMBER_BYTES = 8
const NOBODY: readonly RoomEvent[] = []

/** Whether this look shows rooms as others may see them too. */
function isShared({ request, since, ignored, sources }: Look): boolean {
  const { filter, lostAfter } = request
  const { timeline, state } = filter.room
  if (since !== undefined || lostAfter !== undefined || ignored !== undefined) return false
  if (!timeline.matchesAll || timeline.relatedBy !== undefined || sources.lifetimes !== undefined) return false
  if (!state.matchesAll || state.relatedBy !== undefined) return false
  return filter.eventFields === undefined && filter.eventFormat === 'client'
}

/** What of a room is shown depends on this much of a request. */
function wishOf(look: Look): number {
  const { filter, stateAfter } = look.request
  return 4 * limitOf(look) + (filter.room.state.lazyLoadMembers ? 2 : 0) + (stateAfter === undefined ? 0 : 1)
}

/** What first syncs have read of this room, if it is what this one would read. */
function knownReading(look: Look, { nid, committed, purgedTo }: Room): FirstReading | undefined {
  const known = look.sources.firstReadings.get(nid)
  if (known?.version !== committed.version || known.purgedTo !== purgedTo) return undefined
  return known.wish === wishOf(look) && !isNewer(committed.nid, look.now.events) ? known : undefined
}

/** What another first sync has written of a room, if this reader sees the same. */
export function firstSectionOf(look: Look, room: Room): FirstSection | undefined {
  const { timeline, state } = look.request.filter.room
  if (!isShared(look) || !timeline.roomMatches(room.id) || !state.roomMatches(room.id)) return undefined
  return sectionFor(look, room, knownReading(look, room)?.section)
}

/** Undefined for a reader who came later than what it shows. */
function sectionFor({ by }: Look, room: Room, section: FirstSection | undefined): FirstSection | undefined {
  const seesFrom = room.localMembers.get(by.userNid)?.since ?? Number.POSITIVE_INFINITY
  return section !== undefined && section.oldest >= seesFrom ? section : undefined
}

/** What a first sync shows of a room. */
export interface FirstShown {
  /** The room's head when that was read. */
  readonly head: Head
  readonly slice: TimelineSlice
  readonly extras: EventExtras
  readonly target: StateMap
  readonly state: RoomState
}

/** Notes what a first sync has read. The second one of the same writes it for others too. References of the events must be loaded. */
export function keepFirst(look: Look, room: Room, shown: FirstShown): FirstSection | undefined {
  const { head, slice, extras, state } = shown
  if (!isShared(look) || extras.membershipAt !== alwaysJoined) return undefined
  if (head !== room.committed || !room.alive || isNewer(head.nid, look.now.events)) return undefined
  if (!isWhole(look, room, slice) || state.left.length > 0) return undefined
  const known = knownReading(look, room)
  const section = known && (known.section ?? sectionOf(look, room, shown))
  const { version } = head
  look.sources.firstReadings.set(room.nid, { version, purgedTo: room.purgedTo, wish: wishOf(look), section })
  return sectionFor(look, room, section)
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

/** Undefined if it is too large to keep, or if some who were there see something else. */
function sectionOf(look: Look, room: Room, { slice, extras, target, state }: FirstShown): FirstSection | undefined {
  const { events, limited } = slice
  const isOnlyForReader = (event: RoomEvent) => event.isCopy || event.rendered?.isSticky !== false
  if (events.some(isOnlyForReader) || state.events.some(isOnlyForReader)) return undefined
  const bundled = look.sources.sharedBundles.forMembers(room, limited ? events : [])
  if (bundled === undefined) return undefined
  if (jsonBytes(events) + bundled.bytes + jsonBytes(state.events) > MAX_FIRST_SECTION_BYTES) return undefined
  const [oldest] = events as readonly [RoomEvent]
  const senders = sendersOf(room, events)
  const senderNids = sendersMembers(look, room, target, senders)
  const own = new Set(ownMembers(look, state.events, senderNids))
  const common = own.size === 0 ? state.events : state.events.filter((event) => !own.has(event))
  const timeline = new WrittenEvents(events, readingOf(look, { ...extras, relations: bundled.bundles }))
  const written = new WrittenEvents(common, readingOf(look))
  const { threads } = timeline
  const bytes =
    SECTION_BYTES +
    timeline.bytes +
    written.bytes +
    // The room may be forgotten before this is.
    stateBytes(target) +
    ITEM_BYTES * senders.length +
    NUMBER_BYTES * (common.length + threads.length + 2 * senderNids.size)
  return {
    timeline,
    limited,
    before: oldest.pos - 1,
    oldest: bundled.children.reduce((least, { streamPos }) => Math.min(least, streamPos), oldest.streamPos),
    senders,
    target,
    state: written,
    stateNids: common.map(({ nid }) => nid),
    senderNids,
    threads,
    bytes,
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
  { state, stateNids }: FirstSection,
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
    state.write(out, reading, written, end)
    written = end
  }
  out.text('[')
  for (const event of own) {
    let end = written
    while (end < stateNids.length && stateNids[end]! < event.nid) end++
    writeUpTo(end)
    comma()
    writeClientEvent(out, event, reading)
  }
  writeUpTo(stateNids.length)
  return out.text(']')
}
