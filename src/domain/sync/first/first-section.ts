import type { UserId } from '../../../core/ids.ts'
import type { JsonBytes } from '../../../core/json-bytes.ts'
import { clientEventText } from '../../rooms/room/client-event.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import { allOf } from '../all-of.ts'
import type { Look, RoomNews, Section } from '../look.ts'
import {
  afterEvents,
  besideEvents,
  countsOf,
  loadState,
  type RoomState,
  readingOf,
  type Summary,
  stateName,
  stateToSend,
  summaryOf,
  summaryText,
  sumsText,
} from '../room-section.ts'
import { SHARED_FOR_MS } from '../shared-stretches.ts'
import { notifiableAt } from '../shown-timeline.ts'
import type { RoomUnread } from '../unread-mark.ts'
import { firstWritten, keepState, ownMembers } from './first-sections.ts'
import type { FirstState, FirstWritten, Opening, WrittenTimeline } from './readings.ts'
import { knownReading, withParts } from './timelines.ts'
import { WrittenEvents, type WrittenFor } from './written-events.ts'

/** Who reads, in rooms where they have a part in no thread. */
export const firstReader = (look: Look): WrittenFor => ({ ...readingOf(look), agesFor: SHARED_FOR_MS })

/**
 * The section of a room in a first sync, where it is written already for all of its readers. Undefined where this reader needs more than
 * fits into memory, or what others are not shown.
 */
export function firstSection(
  look: Look,
  news: RoomNews,
  reader: WrittenFor,
): Section | undefined | Promise<Section | undefined> {
  const { registry, shadowBans, sticky } = look.sources
  const room = registry.peekAlive(news.roomNid)
  if (room === undefined || !look.request.filter.room.roomMatches(room.id)) return undefined
  const written = firstWritten(look, room)
  if (written === undefined) return undefined
  if (shadowBans.ghosts(look.by.userNid, room.nid, 0, look.now.ledger).length > 0) return undefined
  if (!sticky.isEmpty && sticky.between(room.nid, undefined, look.now.events).length > 0) return undefined
  const counting = look.sources.unread.count(look.by.userNid, room.nid, notifiableAt(look, room))
  const { threads } = written.timeline
  if (openedFor(look, written)?.hasSummary && threads.length === 0 && !(counting instanceof Promise)) {
    return withState(look, room, news, written, [NO_PARTS, undefined, counting], reader)
  }
  const knowing = allOf([
    partsOf(look, room, written.timeline),
    summaryOf(look, room, written.state?.isNamed),
    counting,
  ])
  return knowing instanceof Promise
    ? knowing.then((known) => withState(look, room, news, written, known, reader))
    : withState(look, room, news, written, knowing, reader)
}

/** Undefined for a summary that the opening has. */
type Known = readonly [parts: ReadonlySet<number> | undefined, Summary | undefined, RoomUnread]

const NO_PARTS: ReadonlySet<number> = new Set()
const NO_HEROES: readonly UserId[] = []

function partsOf(look: Look, room: Room, timeline: WrittenTimeline) {
  const knowing = withParts(look, room, timeline)
  return knowing instanceof Promise ? knowing.then((known) => known?.parts) : knowing?.parts
}

/** Goes on with the state that only this reader is shown, or with all of it where none is written yet. */
function withState(
  look: Look,
  room: Room,
  news: RoomNews,
  { timeline, state: common, reading }: FirstWritten,
  [parts, summary, unread]: Known,
  reader: WrittenFor,
): Section | undefined | Promise<Section | undefined> {
  if (parts === undefined) return undefined
  const heroes = summary?.['m.heroes'] ?? NO_HEROES
  const target = common?.target ?? room.committed.state
  const nids = common
    ? ownMemberNids(look, room, common, heroes)
    : stateToSend(look, room, { target, known: undefined, isFull: true, senders: () => timeline.senders, heroes })
  const finish = (loaded: RoomState): Section | undefined => {
    if (loaded.left.length > 0) return undefined
    const state = common ?? keepState(look, room, timeline, { target, state: loaded })
    const own = common || !state ? loaded.events : ownMembers(look, loaded.events, state.senders)
    return writtenSection(
      look,
      room,
      { timeline, state, reading },
      {
        own,
        beside: besideEvents(look, room, news),
        summary,
        unread,
        reader: parts.size === 0 ? reader : { ...reader, parts },
      },
    )
  }
  const loading = loadState(look, room, nids)
  return loading instanceof Promise ? loading.then(finish) : finish(loading)
}

/** With members that are loaded lazily: the numbers of those whom this reader is shown beside the senders. Notes that the client knows all. */
function ownMemberNids(look: Look, room: Room, { target, senders }: FirstState, heroes: readonly UserId[]): number[] {
  const { by, request, sources, now } = look
  if (!request.filter.room.state.lazyLoadMembers) return []
  const own = new Map<string, number>()
  const add = (userId: UserId) => {
    const nid = senders.has(userId) ? 0 : room.stateNid(target, 'm.room.member', userId)
    if (nid !== 0) own.set(userId, nid)
  }
  heroes.forEach(add)
  add(by.userId)
  sources.lazyMembers.record(by.tokenNid, room.nid, undefined, own, now.events, senders)
  return [...own.values()]
}

/** What a section has for its reader alone. */
export interface ForReader {
  readonly reader: WrittenFor
  /** State: members, or all of it where none is shared. */
  readonly own: readonly RoomEvent[]
  readonly beside: JsonBytes
  readonly summary: Summary | undefined
  readonly unread: RoomUnread
}

/** Bytes of what is written between the parts of a section, generously. */
const BETWEEN_BYTES = 500

export function writtenSection(
  look: Look,
  room: Room,
  written: FirstWritten,
  { reader, own, beside, summary, unread }: ForReader,
): Section {
  const { timeline, state } = written
  const opening = state && openingOf(look, room, written)
  let ownBytes = 0
  for (const { json } of own) ownBytes += json.length
  const commonBytes = opening?.written.jsonBytes ?? timeline.events.jsonBytes + (state?.events.jsonBytes ?? 0)
  return {
    roomId: room.id,
    bytes: BETWEEN_BYTES + commonBytes + ownBytes + beside.length,
    hasKey: opening !== undefined,
    write(out) {
      if (opening) opening.written.write(out, reader)
      else {
        out.text(BEFORE_TIMELINE)
        timeline.events.write(out, reader)
        out.text(beforeState(look, timeline))
        state?.events.write(out, reader)
      }
      const isFirst = state === undefined || state.events.jsonBytes === 0
      const end = `${listText(own, reader, isFirst)}]}`
      const sums = sumsText(look, opening?.hasSummary ? undefined : summary, unread)
      if (beside.isEmpty) out.text(end + sums)
      else out.text(end).append(beside).text(sums)
    },
  }
}

const BEFORE_TIMELINE = '{"timeline":{"events":['

/** @param summary as JSON, where it is for everybody */
const beforeState = (look: Look, { limited, before }: WrittenTimeline, summary?: string): string =>
  `]${afterEvents(limited, before)}${summary ? `,"summary":${summary}` : ''},"${stateName(look)}":{"events":[`

/** Events with commas between them, and before them if they are not the first. */
function listText(events: readonly RoomEvent[], reader: WrittenFor, isFirst: boolean): string {
  let text = ''
  for (const event of events) text += `${isFirst && text === '' ? '' : ','}${clientEventText(event, reader)}`
  return text
}

/** The opening, if there is one that this reader wants. */
function openedFor(look: Look, { timeline, state, reading }: FirstWritten): Opening | undefined {
  const { opening } = reading
  const isWhole = state !== undefined && reading.state === state && reading.timeline === timeline
  return isWhole && opening?.stateName === stateName(look) ? opening : undefined
}

/** Timeline and state in one piece. The first reader is written both from where they are: one alone need not pay for a copy. */
function openingOf(look: Look, room: Room, written: FirstWritten): Opening | undefined {
  const { timeline, state, reading } = written
  if (reading.opening || reading.timeline !== timeline || reading.state !== state) return openedFor(look, written)
  if (reading.wasShown) return join(look, room, written)
  reading.wasShown = true
  return undefined
}

function join(look: Look, room: Room, { timeline, state, reading }: FirstWritten): Opening | undefined {
  if (!(timeline.events instanceof WrittenEvents && state?.events instanceof WrittenEvents)) return undefined
  if (knownReading(look, room) !== reading) return undefined
  const summary = state.isNamed ? summaryText(countsOf(room)) : undefined
  const beginning = `${JSON.stringify(room.id)}:${BEFORE_TIMELINE}`
  const pieces = [beginning, timeline.events, beforeState(look, timeline, summary), state.events]
  const written = WrittenEvents.joined(pieces, look.timeMs)
  const opening = { written, stateName: stateName(look), hasSummary: summary !== undefined }
  // The pieces are of use where only one of them is wanted.
  look.sources.firstReadings.set(room.nid, {
    ...reading,
    timeline: { ...timeline, events: written.part(1) },
    state: { ...state, events: written.part(3) },
    opening,
  })
  return opening
}
