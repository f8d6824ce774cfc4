import { membershipOf } from '../../core/event/content.ts'
import { STICKY } from '../../core/event/sticky.ts'
import { isObject } from '../../core/json.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { diffState, getState, type StateMap, setState } from '../../core/state/trie.ts'
import { accountDataBetween } from '../../store/accounts/account-data.ts'
import { MAX_ANSWER_PART_BYTES } from '../limits.ts'
import type { Ghost } from '../moderation/shadow-bans.ts'
import { alwaysJoined, isMarkedFor, loadReferences } from '../rooms/room/client-event.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { firstReader, firstSection, writtenSection } from './first/first-section.ts'
import { keepFirst, ownMembers, sharesSections } from './first/first-sections.ts'
import { keepTimeline, partsIn, sharedTimeline, writeWritten } from './first/timelines.ts'
import { type Look, type RoomNews, type Section, type Span, wasResyncedWithin } from './look.ts'
import {
  afterEvents,
  besideEvents,
  type EventExtras,
  isSummed,
  loadState,
  sendersOf,
  stateName,
  stateToSend,
  summaryOf,
  sumsText,
  writeEventList,
  writeState,
} from './room-section.ts'
import type { TimelineSlice } from './room-timeline.ts'
import { keepNews, mayShareNews, sectionOf, sharedNews } from './shared-news.ts'
import { SHARED_FOR_MS } from './shared-stretches.ts'
import { notifiableAt, shownTimeline } from './shown-timeline.ts'
import { stickyEventsOf } from './sticky-section.ts'
import { isNewer, type StreamPosition } from './token.ts'

/** What is new in a room that the user is in (client-server API, "Joined Room"). Synchronous where another reader has just got the same. */
function joinedSection(look: Look, news: RoomNews): Section | Promise<Section | undefined> {
  return sharedNews(look, news) ?? readSection(look, news)
}

/** Makes the sections of rooms that the user is in. */
export function joinedSections(look: Look): typeof joinedSection {
  if (!sharesSections(look)) return joinedSection
  const reader = firstReader(look)
  return (_look, news) => {
    const written = firstSection(look, news, reader)
    if (written instanceof Promise) return written.then((section) => section ?? readSection(look, news))
    return written ?? readSection(look, news)
  }
}

async function readSection(look: Look, news: RoomNews): Promise<Section | undefined> {
  const { registry } = look.sources
  const room = registry.peekAlive(news.roomNid) ?? (await registry.getByNid(news.roomNid))
  if (!look.request.filter.room.roomMatches(room.id)) return undefined
  const wasResynced = wasResyncedWithin(look, room.nid)
  const isNew = wasResynced && !look.request.filter.room.state.lazyLoadMembers
  const knowing = isNew ? undefined : knownState(look, room)
  const known = knowing instanceof Promise ? await knowing : knowing
  const ghosts = look.sources.shadowBans.ghosts(look.by.userNid, room.nid, look.since?.ledger ?? 0, look.now.ledger)
  const head = room.committed
  const reading = timelineOf(look, room, known === undefined)
  const read = reading instanceof Promise ? await reading : reading
  // Events that the client has from what was lost must not stay in its timeline.
  const slice = look.request.lostAfter === undefined || read.limited ? read : { ...read, limited: true }
  const ownMembership = look.sources.membershipsAt(look.by, room, slice.events)
  const membershipAt = typeof ownMembership === 'function' ? ownMembership : await ownMembership
  const isFull = known === undefined || look.request.fullState
  const sharing = isFull || ghosts.length > 0 ? undefined : sharedTimeline(look, room, slice)
  const written = sharing instanceof Promise ? await sharing : sharing
  const loading = written ? undefined : loadReferences(look.sources.events, slice.events)
  if (loading) await loading
  const isBundling = slice.limited && !written
  const bundling = isBundling ? look.sources.bundle({ viewer: look.by }, room, slice.events) : undefined
  const relations = bundling && (await bundling)
  const extras = { membershipAt, relations }
  const beginning = isFull || slice.limited ? stateBefore(look, room, slice) : known
  const begin = beginning instanceof Promise ? await beginning : beginning
  const ending = stateNow(look, room)
  const end = ending instanceof Promise ? await ending : ending
  const target = look.request.stateAfter === undefined ? beforeTimeline(begin, slice, end) : end
  const isSummedUp = isFull || wasResynced || slice.limited || slice.events.some(isSummed)
  const summing = isSummedUp ? summaryOf(look, room) : undefined
  const summary = summing instanceof Promise ? await summing : summing
  const heroes = summary?.['m.heroes'] ?? []
  const wish = { target, known, isFull, senders: () => sendersOf(room, slice.events), heroes }
  const nids = stateToSend(look, room, wish)
  const loadingState = loadState(look, room, nids)
  const state = loadingState instanceof Promise ? await loadingState : loadingState
  const beside = besideEvents(look, room, known === undefined && look.since ? await allNews(look, room, news) : news)
  const sticking = stickyEventsOf(look, room, known && look.since?.events, slice.events)
  const sticky = sticking instanceof Promise ? await sticking : sticking
  const isSilent =
    ghosts.length + slice.events.length + state.events.length + state.left.length + sticky.length === 0 &&
    !slice.limited &&
    beside.isEmpty
  if (isSilent && !isFull && !summary && !movesUnread(look, news)) return undefined
  const counting = look.sources.unread.count(look.by.userNid, room.nid, notifiableAt(look, room))
  const unread = counting instanceof Promise ? await counting : counting
  const section = isFull ? keepFirst(look, room, { head, slice, extras, target, state }) : undefined
  if (section?.state && ghosts.length + sticky.length === 0) {
    const own = ownMembers(look, state.events, section.state.senders)
    const reader = { ...firstReader(look), parts: partsIn(relations) }
    return writtenSection(look, room, section, { own, beside, summary, unread, reader })
  }
  if (!isFull && !written) keepTimeline(look, room, { head, slice, extras })
  const hasMore = isFull || wasResynced || slice.limited || summary !== undefined || !beside.isEmpty
  const others = state.events.length + state.left.length + sticky.length + ghosts.length
  if (!hasMore && others === 0 && membershipAt === alwaysJoined && mayShareNews(look, room, news)) {
    const json = writeBare(look, room, slice)
    const memberNid = (userId: string) => room.stateNid(target, MEMBER, userId)
    if (typeof json === 'string') keepNews(look, room, { events: slice.events, memberNid, json })
    return sectionOf(look, room.id, json, unread)
  }
  return {
    roomId: room.id,
    write(out) {
      out.text('{"timeline":')
      if (written) writeWritten(out, look, written)
      else writeTimeline(out, look, room, slice, extras, ghosts)
      out.text(`,"${stateName(look)}":{"events":`)
      writeState(out, look, state).text('}').append(beside)
      if (sticky.length > 0) writeEventList(out.text(`,"${STICKY}":{"events":`), look, sticky).text('}')
      out.text(sumsText(look, summary, unread))
    },
  }
}

const MEMBER = 'm.room.member'

/** Writes a section that has events of the timeline only, but for the unread counts. */
function writeBare(look: Look, room: Room, slice: TimelineSlice): string | Buffer {
  const out = new JsonBytes().text('{"timeline":')
  writeTimeline(out, look, room, slice, { membershipAt: alwaysJoined }, [])
  return out.text(`,"${stateName(look)}":{"events":[]}`).whole()
}

/** The state that the client knows. Undefined when the user was not in the room at the client's position, so that all of it is new. */
export function knownState(look: Span, room: Room): StateMap | undefined | Promise<StateMap | undefined> {
  const { since, by, sources } = look
  if (!since) return undefined
  const member = room.localMembers.get(by.userNid)
  if (!member || isNewer(member.since, since.events)) return knownIfJoined(look, room, since)
  return isNewer(room.committed.nid, since.events) ? sources.states.at(room, since.events) : room.committed.state
}

async function knownIfJoined(
  { by, sources }: Span,
  room: Room,
  { events }: StreamPosition,
): Promise<StateMap | undefined> {
  const state = await sources.states.at(room, events)
  return (await isJoinedIn(state, room, by, sources)) ? state : undefined
}

/** Whether a user is joined to a room in a given state. */
export async function isJoinedIn(
  state: StateMap,
  room: Room,
  { userId }: Span['by'],
  { events }: Span['sources'],
): Promise<boolean> {
  const keyId = room.keys.idOf('m.room.member', userId)
  const nid = keyId === undefined ? 0 : getState(state, keyId)
  return nid !== 0 && membershipOf((await events.load([nid])).get(nid)) === 'join'
}

/** For a room that is new to the client, also what is older than the client's position, because the client was not sent it. */
async function allNews({ sources, by, now }: Look, room: Room, news: RoomNews): Promise<RoomNews> {
  const [receipts, accountData] = await Promise.all([
    sources.receipts(by, [room.nid], 0, now.ledger),
    accountDataBetween(sources.db, by.userNid, 0, now.ledger, { maxBytes: MAX_ANSWER_PART_BYTES, roomId: room.id }),
  ])
  return { ...news, receipts: receipts.get(room.nid), accountData }
}

function timelineOf(look: Look, room: Room, isNew: boolean): TimelineSlice | Promise<TimelineSlice> {
  const { since, now, by, request } = look
  const seesFrom = room.localMembers.get(by.userNid)?.since ?? Number.POSITIVE_INFINITY
  // After a restore only what came with it: clients that find an event that they have keep their timeline, with what was lost in it.
  const from = isNew ? request.lostAfter?.events : since?.events
  return shownTimeline(look, room, { since: from, upTo: now.events, seesFrom })
}

export function stateNow({ now, sources }: Look, room: Room): StateMap | Promise<StateMap> {
  const { nid, state } = room.committed
  return isNewer(nid, now.events) ? sources.states.at(room, now.events) : state
}

function stateBefore(look: Look, room: Room, { events }: TimelineSlice): StateMap | Promise<StateMap> {
  const [first] = events
  return first ? look.sources.states.before(room, first) : stateNow(look, room)
}

/**
 * The state before the timeline, such that the timeline leads to the current state. It already includes changes that the timeline does not
 * show, because state resolution made them, or because a filter or history visibility left events out.
 */
export function beforeTimeline(begin: StateMap, { events }: TimelineSlice, end: StateMap): StateMap {
  const shown = new Set(events.map(({ keyId }) => keyId))
  let target = begin
  diffState(begin, end, (keyId, _, now) => {
    if (now !== 0 && !shown.has(keyId)) target = setState(target, keyId, now)
  })
  return target
}

function writeTimeline(
  out: JsonBytes,
  look: Look,
  room: Room,
  slice: TimelineSlice,
  more: EventExtras,
  ghosts: readonly Ghost[],
): void {
  const first = slice.events[0]
  const before = first ? first.pos - 1 : room.committed.pos
  out.text('{"events":')
  if (ghosts.length === 0) writeTimelineEvents(out, look, room, slice.events, more)
  else writeHauntedEvents(out, look, slice.events, more, ghosts)
  out.text(afterEvents(slice.limited, before))
}

/** Writes the list of a timeline's events, and after them those that only their sender sees. */
function writeHauntedEvents(
  out: JsonBytes,
  look: Look,
  events: readonly RoomEvent[],
  more: EventExtras,
  ghosts: readonly Ghost[],
): void {
  const list = writeEventList(new JsonBytes(), look, events, more).toBuffer().toString()
  const shown = [...(events.length === 0 ? [] : [list.slice(1, -1)]), ...ghosts.map(({ json }) => json)]
  out.text(`[${shown.join(',')}]`)
}

/** Writes the list of a timeline's events. The newest events of a room are written once for all who read them now. */
export function writeTimelineEvents(
  out: JsonBytes,
  look: Look,
  room: Room,
  events: readonly RoomEvent[],
  more: EventExtras,
): void {
  const isShared = more.membershipAt === alwaysJoined && more.relations === undefined
  const shared = isShared ? sharedEvents(look, room, events) : undefined
  if (shared) out.text(shared)
  else writeEventList(out, look, events, more)
}

function sharedEvents(look: Look, room: Room, events: readonly RoomEvent[]): string | undefined {
  const { filter } = look.request
  const [first] = events
  if (!first || look.since === undefined || filter.eventFields || filter.eventFormat !== 'client') return undefined
  if (events.length !== events.at(-1)!.pos - first.pos + 1) return undefined
  if (events.some((event) => event.isCopy || isMarkedFor(event, look.by))) return undefined
  const key = `${first.pos}-${events.at(-1)!.pos}`
  const known = look.sources.stretches.get(room.nid)
  if (known?.key === key && look.timeMs - known.madeAt < SHARED_FOR_MS) return known.json
  const json = writeEventList(new JsonBytes(), look, events, { membershipAt: alwaysJoined }).toBuffer().toString()
  look.sources.stretches.set(room.nid, { key, madeAt: look.timeMs, json })
  return json
}

/** The user has read further: the unread count changed, even if the filter leaves receipts out. */
export function movesUnread({ by }: Look, { receipts = {} }: Pick<RoomNews, 'receipts'>): boolean {
  return Object.values(receipts).some(
    (kinds) =>
      isObject(kinds) && Object.values(kinds).some((users) => isObject(users) && Object.hasOwn(users, by.userId)),
  )
}
