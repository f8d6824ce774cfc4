import { ProtocolError } from '../../../core/errors.ts'
import { membershipOf } from '../../../core/event/content.ts'
import type { EventMatcher } from '../../../core/filter.ts'
import type { EventId, RoomId } from '../../../core/ids.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import type { Database } from '../../../store/db/db.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { Clock } from '../../clock.ts'
import { loadReferences, type Reading, writeClientEvent } from '../room/client-event.ts'
import type { EventCache } from '../room/event-cache.ts'
import { keysAt, stateAt, stateNids } from '../room/past-state.ts'
import { encodePosition } from '../room/position-token.ts'
import type { Room } from '../room/room.ts'
import type { Readable, RoomAccess } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { BundleAggregations } from './bundles.ts'
import { writeEventList } from './event-lists.ts'
import { createFullReading } from './full-reading.ts'
import type { Positions } from './positions.ts'
import type { KeepRelated } from './related.ts'
import { BEGINNING, type Direction, type Page, type Stretch, type Timeline } from './timeline.ts'

export interface MessagesQuery {
  readonly direction: Direction
  readonly from: string | undefined
  readonly to: string | undefined
  readonly limit: number | undefined
  readonly filter: EventMatcher
}

export interface ContextQuery {
  readonly limit: number | undefined
  readonly filter: EventMatcher
}

/**
 * The events of a room that the reader may see. Answers are complete JSON bodies, put together from the stored bytes of events. Source:
 * client-server API, "Getting events for a room", "Lazy-loading room members".
 */
export interface HistoryReader {
  /** @throws ProtocolError `M_NOT_FOUND`, also for users who may not read the room */
  event(by: Requester, roomId: RoomId, eventId: EventId): Promise<JsonBytes>
  /**
   * A page of history, for users who are or were in the room, and for all if it is world readable. Without `end` nothing is left in its
   * direction; an empty page with an `end` is not the last.
   */
  messages(by: Requester, roomId: RoomId, query: MessagesQuery): Promise<JsonBytes>
  /** The events around an event, and the state of the room after it. */
  context(by: Requester, roomId: RoomId, eventId: EventId, query: ContextQuery): Promise<JsonBytes>
}

export interface HistoryReaderParts {
  readonly db: Database
  readonly events: EventCache
  readonly access: RoomAccess
  readonly timeline: Timeline
  readonly positions: Positions
  readonly clock: Clock
  readonly keepRelated: KeepRelated
  readonly bundle: BundleAggregations
}

const DEFAULT_LIMIT = 10
const MAX_LIMIT = 1_000

function wanted({ filter, limit }: ContextQuery): number {
  return Math.min(limit ?? filter.limit ?? DEFAULT_LIMIT, MAX_LIMIT)
}

export function createHistoryReader(parts: HistoryReaderParts): HistoryReader {
  const { access, events, timeline, positions } = parts
  const readingWith = createFullReading(parts)

  async function stretchOf(room: Room, readableUpTo: number, { direction, from, to }: MessagesQuery): Promise<Stretch> {
    const positionOf = (token: string | undefined) =>
      token === undefined ? undefined : positions.positionOf(token, room)
    const [begin, end] = await Promise.all([positionOf(from), positionOf(to)])
    const [after, upTo] = direction === 'b' ? [end, begin] : [begin, end]
    const upper = Math.min(upTo ?? readableUpTo, readableUpTo)
    return { room, direction, after: after ?? BEGINNING, upTo: upper }
  }

  /** Other servers are only asked on behalf of members. */
  const isMember = (by: Requester, room: Room): boolean => room.localMembers.has(by.userNid)

  /** The member events of the senders of these events, as of the newest of them. */
  async function membersOf(room: Room, senders: readonly RoomEvent[], newest: RoomEvent): Promise<RoomEvent[]> {
    const keyIds = [...new Set(senders.map(({ sender }) => sender))].flatMap(
      (sender) => room.keys.idOf('m.room.member', sender) ?? [],
    )
    return load(await keysAt(parts.db, room, newest.pointAfter, keyIds))
  }

  async function load(nids: readonly number[]): Promise<RoomEvent[]> {
    return [...(await events.load(nids)).values()].sort((a, b) => a.pos - b.pos)
  }

  async function stateAround(
    room: Room,
    shown: readonly RoomEvent[],
    newest: RoomEvent,
    filter: EventMatcher,
  ): Promise<RoomEvent[]> {
    const state = filter.lazyLoadMembers
      ? await membersOf(room, shown, newest)
      : await load(stateNids(await stateAt(parts.db, room, newest.pointAfter)))
    return filter.roomMatches(room.id) ? state.filter(filter.eventMatches) : []
  }

  /** An invited user sees only the state that history visibility shows them, and what they saw when they were in the room before. */
  async function stateFor(by: Requester, { room, departure }: Readable, state: RoomEvent[]): Promise<RoomEvent[]> {
    if (isMember(by, room)) return state
    if (membershipOf(await room.stateEvent('m.room.member', by.userId)) !== 'invite') return state
    const shown = new Set((await access.visibleTo(by, room, state)).map(({ nid }) => nid))
    return state.filter(({ nid, pos }) => shown.has(nid) || pos <= (departure?.pos ?? Number.NEGATIVE_INFINITY))
  }

  return {
    async event(by, roomId, eventId) {
      const seen = await access.find(by, roomId, eventId)
      if (!seen) throw new ProtocolError('M_NOT_FOUND', 'There is no such event in this room for you to see.')
      const { room, event, upTo } = seen
      const out = new JsonBytes()
      writeClientEvent(out, event, await readingWith(by, room, [event], upTo))
      return out
    },

    async messages(by, roomId, query) {
      const { room, upTo } = await access.mustReadState(by, roomId)
      const stretch = await stretchOf(room, upTo, query)
      const { filter, from } = query
      const page = filter.roomMatches(roomId)
        ? await timeline.page(
            by,
            { ...stretch, isFilled: isMember(by, room) },
            wanted(query),
            filter.eventMatches,
            filter.relatedBy,
          )
        : { events: [], next: undefined }
      const newest = query.direction === 'b' ? page.events[0] : page.events.at(-1)
      const state = filter.lazyLoadMembers && newest ? await membersOf(room, page.events, newest) : undefined
      await loadReferences(events, state ?? [])
      const start = from ?? encodePosition(query.direction === 'b' ? stretch.upTo : stretch.after)
      return writeMessages(start, page, state, await readingWith(by, room, page.events, upTo))
    },

    async context(by, roomId, eventId, query) {
      const seen = await access.mustSee(by, roomId, eventId)
      const { room, event, upTo } = seen
      const limit = wanted(query)
      const { filter } = query
      const read = (direction: Direction, after: number, end: number, count: number): Promise<Page> =>
        timeline.page(
          by,
          { room, direction, after, upTo: end, isFilled: isMember(by, room) },
          count,
          (near) => filter.roomMatches(roomId) && filter.eventMatches(near),
          filter.relatedBy,
        )
      const [before, later] = await Promise.all([
        read('b', BEGINNING, event.pos - 1, Math.floor(limit / 2)),
        read('f', event.pos, upTo, Math.ceil(limit / 2)),
      ])
      const shown = [...before.events, event, ...later.events]
      const newest = later.events.at(-1) ?? event
      const around = await stateFor(by, seen, await stateAround(room, shown, newest, filter))
      const state = filter.relatedBy ? await parts.keepRelated(by, room, around, filter.relatedBy) : around
      await loadReferences(events, state)
      return writeContext(event, before, later, state, await readingWith(by, room, shown, upTo))
    },
  }
}

/** Of the reader's membership at each event of a state nothing is known. */
const ofState = (reading: Reading): Reading => ({ ...reading, membershipAt: undefined })

function writeMessages(
  start: string,
  page: Page,
  state: readonly RoomEvent[] | undefined,
  reading: Reading,
): JsonBytes {
  const out = new JsonBytes().text('{').key('chunk', true)
  writeEventList(out, page.events, reading)
  out.key('start').value(start)
  if (page.next !== undefined) out.key('end').value(encodePosition(page.next))
  if (state) writeEventList(out.key('state'), state, ofState(reading))
  return out.text('}')
}

function writeContext(
  event: RoomEvent,
  before: Page,
  later: Page,
  state: readonly RoomEvent[],
  reading: Reading,
): JsonBytes {
  const out = new JsonBytes().text('{').key('event', true)
  writeClientEvent(out, event, reading)
  writeEventList(out.key('events_before'), before.events, reading)
  writeEventList(out.key('events_after'), later.events, reading)
  writeEventList(out.key('state'), state, ofState(reading))
  const oldest = before.events.at(-1) ?? event
  const newest = later.events.at(-1) ?? event
  out.key('start').value(encodePosition(before.next ?? oldest.pos - 1))
  out.key('end').value(encodePosition(later.next ?? newest.pos))
  return out.text('}')
}
