import { avatarUrlOf, displayNameOf } from '../../../core/event/content.ts'
import type { JsonObject } from '../../../core/json.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import { alwaysJoined, loadReferences } from '../../rooms/room/client-event.ts'
import { encodePosition } from '../../rooms/room/position-token.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import { allOf } from '../all-of.ts'
import { knownState, stateNow, writeTimelineEvents } from '../joined-room.ts'
import { wasResyncedWithin } from '../look.ts'
import { type EventExtras, loadState, type RoomState, writeState } from '../room-section.ts'
import type { TimelineSlice } from '../room-timeline.ts'
import { notifiableAt, shownTimeline } from '../shown-timeline.ts'
import { type EventPosition, isNewer } from '../token.ts'
import type { RoomUnread } from '../unread-mark.ts'
import { roomLook, type SlidingLook, sentUpTo } from './look.ts'
import { isSameRoom, type SentRoom } from './record.ts'
import type { RoomWish } from './request.ts'
import { liveIn, type RoomAnswer, sentNow, writeCommon } from './room-answer.ts'
import { namesIn } from './room-names.ts'
import { keepAnswer, sharedAnswer, withUnread } from './shared-answers.ts'
import { type StateChanges, stateChanges } from './state-changes.ts'
import type { WantedRoom } from './windows.ts'

/** What is known of a room's news before it is looked at. */
export interface RoomHints {
  /** False if nothing happened in the room that the client was not sent. */
  readonly hasEvents: boolean
  /** Whether the user has read further. */
  readonly movesUnread: boolean
}

/** How a client continues with a room. */
interface Course {
  readonly sent: SentRoom | undefined
  /** The state that the client has; undefined if it begins with the room. */
  readonly known: StateMap | undefined
  readonly slice: TimelineSlice
  /** Whether events are among the timeline that the client may have. */
  readonly isExpanded: boolean
  readonly wasResynced: boolean
}

/** The answer of a room of which the client has everything, without a look at the room; undefined if it may lack something. */
export function nothingNewIn(look: SlidingLook, wanted: WantedRoom, hints: RoomHints): RoomAnswer | undefined {
  const { nid } = wanted.room
  const sent = look.record.rooms.get(nid)
  const id = look.own.recency.idOf(nid)
  if (sent === undefined || id === undefined || hints.hasEvents || hints.movesUnread) return undefined
  if (!isFulfilled(look, wanted, sent, { nid, id })) return undefined
  return nothingFor({ nid, id }, sent.upTo === undefined ? sent : { ...sent, upTo: undefined })
}

/** What a client needs of a room that the user is in. Synchronous where all of it is in memory. */
export function joinedAnswer(
  look: SlidingLook,
  wanted: WantedRoom,
  hints: RoomHints,
): RoomAnswer | Promise<RoomAnswer> {
  const { registry } = look.sources
  const room = registry.peekAlive(wanted.room.nid)
  if (room) return answerIn(look, wanted, room, hints)
  return registry.getByNid(wanted.room.nid).then((loaded) => answerIn(look, wanted, loaded, hints))
}

function answerIn(
  look: SlidingLook,
  wanted: WantedRoom,
  room: Room,
  hints: RoomHints,
): RoomAnswer | Promise<RoomAnswer> {
  const sent = look.record.rooms.get(room.nid)
  const shared = hints.hasEvents ? sharedAnswer(look, wanted, room, sent) : undefined
  if (shared) return shared
  const view = roomLook(look, sentUpTo(look, sent), wanted.wish.timelineLimit)
  const taking = takeCourse(view, wanted, sent, room)
  if (taking instanceof Promise) return taking.then((course) => writeAnswer({ view, wanted, room, course, hints }))
  return writeAnswer({ view, wanted, room, course: taking, hints })
}

function nothingFor(room: Pick<Room, 'nid' | 'id'>, sent: SentRoom): RoomAnswer {
  return { nid: room.nid, roomId: room.id, json: undefined, sent, isBegun: false, timeline: [], people: [] }
}

/** Whether the client has all that it asks for, as far as the wish goes. */
function isFulfilled(look: SlidingLook, { wish }: WantedRoom, sent: SentRoom, room: Pick<Room, 'nid' | 'id'>): boolean {
  return (
    sent.timelineLimit >= wish.timelineLimit &&
    sent.required.key === wish.required.key &&
    sent.isDirect === look.direct.has(room.id) &&
    !wasResyncedWithin({ ...look, since: sentUpTo(look, sent) }, room.nid)
  )
}

function takeCourse(
  view: SlidingLook,
  { wish }: WantedRoom,
  sent: SentRoom | undefined,
  room: Room,
): Course | Promise<Course> {
  const wasResynced = wasResyncedWithin(view, room.nid)
  const startsOver = sent === undefined || (wasResynced && !wish.required.isLazy)
  const knowing = startsOver ? undefined : knownState(view, room)
  const begun = { wish, sent, room, wasResynced }
  return knowing instanceof Promise ? knowing.then((known) => readOn(view, begun, known)) : readOn(view, begun, knowing)
}

interface Begun extends Pick<Course, 'sent' | 'wasResynced'> {
  readonly wish: RoomWish
  readonly room: Room
}

/** Reads the timeline. @param known the state that the client has; undefined if it begins with the room */
function readOn(view: SlidingLook, begun: Begun, known: StateMap | undefined): Course | Promise<Course> {
  const { wish, sent, room, wasResynced } = begun
  if (known !== undefined && sent !== undefined && wish.timelineLimit > sent.timelineLimit) {
    return widen(view, begun, sent, known)
  }
  const reading = timelineSince(view, room, known === undefined ? undefined : view.since?.events)
  const courseWith = (slice: TimelineSlice): Course => ({ sent, known, slice, isExpanded: false, wasResynced })
  return reading instanceof Promise ? reading.then(courseWith) : courseWith(reading)
}

/** The client wants more of the newest events than it has. */
async function widen(
  view: SlidingLook,
  { room, wasResynced }: Begun,
  sent: SentRoom,
  known: StateMap,
): Promise<Course> {
  const slice = await timelineSince(view, room, undefined)
  const fresh = slice.events.filter(({ streamPos }) => isNewer(streamPos, view.since!.events))
  if (fresh.length === slice.events.length && slice.limited) {
    // Nothing of it was sent before: it is an answer like any other.
    const news = await timelineSince(view, room, view.since!.events)
    return { sent, known, slice: news, isExpanded: false, wasResynced }
  }
  const isExpanded = slice.events.length - fresh.length > sent.timelineLimit
  // The client has all there was: only what came since is new.
  return { sent, known, slice: isExpanded ? slice : { events: fresh, limited: false }, isExpanded, wasResynced }
}

function timelineSince(
  view: SlidingLook,
  room: Room,
  since: EventPosition | undefined,
): TimelineSlice | Promise<TimelineSlice> {
  const seesFrom = room.localMembers.get(view.by.userNid)?.since ?? Number.POSITIVE_INFINITY
  return shownTimeline(view, room, { since, upTo: view.now.events, seesFrom })
}

/** A room's part of the answer, as it is being made. */
interface Draft {
  readonly view: SlidingLook
  readonly wanted: WantedRoom
  readonly room: Room
  readonly course: Course
  readonly hints: RoomHints
}

/** What is read for it, whatever its news are. */
interface Ground {
  readonly extras: EventExtras
  readonly end: StateMap
  /** Undefined where it was not read, because the client may not need it. */
  readonly stamp: number | undefined
}

function writeAnswer(draft: Draft): RoomAnswer | Promise<RoomAnswer> {
  const { view, room, course } = draft
  const { sources, own, by } = view
  const { events, limited } = course.slice
  const reading = allOf([
    sources.membershipsAt(by, room, events),
    stateNow(view, room),
    limited ? sources.bundle({ viewer: view.by }, room, events) : undefined,
    course.known === undefined ? own.bumpStamps(room) : undefined,
    loadReferences(sources.events, events),
  ])
  const go = ([membershipAt, end, relations, stamp]: Exclude<typeof reading, Promise<unknown>>) =>
    answerOn(draft, { extras: { membershipAt, relations }, end, stamp })
  return reading instanceof Promise ? reading.then(go) : go(reading)
}

function answerOn(draft: Draft, ground: Ground): RoomAnswer | Promise<RoomAnswer> {
  const { view, wanted, room, course } = draft
  const { sent, known, slice, wasResynced } = course
  const now = sentNow(view, wanted, room.id, knownLimit(wanted, course))
  const changes = stateChanges(view, room, {
    known,
    end: ground.end,
    required: wanted.wish.required,
    requiredBefore: known === undefined ? undefined : sent?.required,
    timeline: slice.events,
    limited: slice.limited,
    isRecorded: sent === undefined || !isSameRoom(sent, now),
    since: view.since?.events,
  })
  const news = { now, changes, state: { room, events: [], left: [] }, summary: NO_SUMMARY }
  const isSummed = isSummedUp(changes, slice, wasResynced)
  if (changes.nids.size === 0 && !isSummed) return finish(draft, ground, news)
  // What was not known of members before counts as if it had changed.
  const summed = wasResynced ? { ...changes, types: undefined } : changes
  const reading = Promise.all([
    loadState(view, room, [...changes.nids]),
    isSummed ? summaryOf(view, room, ground.end, summed) : NO_SUMMARY,
  ])
  return reading.then(([state, summary]) => finish(draft, ground, { now, changes, state, summary }))
}

interface News {
  readonly now: SentRoom
  readonly changes: StateChanges
  readonly state: RoomState
  readonly summary: Summary
}

function finish(draft: Draft, ground: Ground, news: News): RoomAnswer | Promise<RoomAnswer> {
  const { view, room, course, hints } = draft
  const { slice, known, wasResynced } = course
  const { changes, summary } = news
  const removed = view.sliding.shape.showsRemoved ? changes.removed.length : 0
  const hasNews =
    known === undefined ||
    wasResynced ||
    isDirectNews(draft) ||
    hints.movesUnread ||
    slice.limited ||
    slice.events.length > 0
  if (!hasNews && changes.nids.size + removed === 0 && summary.json === '') return nothingFor(room, news.now)
  const { sources, own, by, sliding } = view
  const reading = allOf([
    ground.stamp ?? own.bumpStamps(room),
    sliding.shape.hasUnread ? sources.unread.count(by.userNid, room.nid, notifiableAt(view, room)) : undefined,
  ])
  const write = ([stamp, unread]: Exclude<typeof reading, Promise<unknown>>) =>
    compose(draft, ground, news, { stamp, unread })
  return reading instanceof Promise ? reading.then(write) : write(reading)
}

/** Whether the client must hear that the room is a direct chat, or is none any more. */
function isDirectNews({ view, room, course: { sent, known } }: Draft): boolean {
  const isDirect = view.direct.has(room.id)
  return known === undefined ? isDirect : sent?.isDirect !== isDirect
}

function compose(
  draft: Draft,
  { extras }: Ground,
  { now, changes, state, summary }: News,
  { stamp, unread }: { readonly stamp: number; readonly unread: RoomUnread | undefined },
): RoomAnswer {
  const { view, wanted, room, course } = draft
  const { shape } = view.sliding
  const { slice, isExpanded, known } = course
  const isInitial = known === undefined
  const removed = shape.showsRemoved
    ? changes.removed.map(({ type, stateKey }) => JSON.stringify({ type, state_key: stateKey }))
    : []
  const out = writeCommon(new JsonBytes(), view, wanted, stamp)
  if (isInitial) out.text(',"initial":true')
  out.text(summary.json)
  if (isDirectNews(draft)) out.text(`,"is_dm":${view.direct.has(room.id)}`)
  if (isExpanded) out.text(`,"${shape.expandedTimeline}":true`)
  if (state.events.length + state.left.length + removed.length > 0 || isInitial) {
    writeState(out.text(',"required_state":'), view, state, removed)
  }
  if (slice.events.length > 0 || slice.limited || isInitial) {
    writeTimelineEvents(out.text(',"timeline":'), view, room, slice.events, extras)
    const before = slice.events[0] ? slice.events[0].pos - 1 : room.committed.pos
    out.text(
      `,"num_live":${liveIn(view, slice.events)},"limited":${slice.limited},"prev_batch":${JSON.stringify(encodePosition(before))}`,
    )
  }
  // Others may want state that changed, though this reader does not.
  const hasState = changes.types?.size !== 0 || changes.nids.size > 0
  const hasMore = hasState || isExpanded || slice.limited || course.wasResynced || isDirectNews(draft)
  const written = !hasMore && extras.membershipAt === alwaysJoined ? out.whole() : undefined
  if (typeof written === 'string')
    keepAnswer(view, wanted, room, { sent: course.sent, timeline: slice.events, json: written })
  return {
    nid: room.nid,
    roomId: room.id,
    json: withUnread(out, unread),
    sent: now,
    isBegun: isInitial || isExpanded,
    timeline: slice.events,
    people: view.sliding.extensions.profiles ? peopleOf(state.events, slice.events, summary.heroes) : [],
  }
}

/** Those whom an answer shows: senders, the users of member events, and those after whom the room is named. */
function peopleOf(state: readonly RoomEvent[], timeline: readonly RoomEvent[], heroes: readonly string[]): string[] {
  const members = [...state, ...timeline].filter(({ type }) => type === 'm.room.member')
  const targets = members.flatMap(({ pdu: { state_key } }) => (typeof state_key === 'string' ? [state_key] : []))
  return [...timeline.map(({ sender }) => sender), ...targets, ...heroes]
}

/** How many of the newest events the client has after this answer. */
function knownLimit({ wish }: WantedRoom, { sent, known, slice }: Course): number {
  const isAnew = known === undefined || sent === undefined || slice.limited
  return isAnew ? wish.timelineLimit : Math.max(sent.timelineLimit, wish.timelineLimit)
}

/** Whether names and counts may have changed. */
function isSummedUp({ types }: StateChanges, { limited }: TimelineSlice, wasResynced: boolean): boolean {
  return types === undefined || wasResynced || limited || SUMMED.some((type) => types.has(type))
}

const SUMMED = ['m.room.member', 'm.room.name', 'm.room.avatar']

interface Summary {
  readonly json: string
  /** The ids of those after whom the room is named. */
  readonly heroes: readonly string[]
}

const NO_SUMMARY: Summary = { json: '', heroes: [] }

/** The fields by which a client shows a room in a list, as far as they changed; each with a comma before it. */
async function summaryOf(look: SlidingLook, room: Room, end: StateMap, changes: StateChanges): Promise<Summary> {
  const { types } = changes
  const { json, hasName } = await namesIn(look, room, end, changes)
  const parts = [json]
  const isRenamed = types === undefined || types.has('m.room.name') || types.has('m.room.member')
  const heroes = !hasName && isRenamed ? await heroesOf(look, room, end) : []
  if (!hasName && isRenamed) parts.push(`,"heroes":${JSON.stringify(heroes)}`)
  if (types === undefined || types.has('m.room.member')) {
    parts.push(`,"joined_count":${room.counts.join},"invited_count":${room.counts.invite}`)
  }
  return { json: parts.join(''), heroes: heroes.map(({ user_id }) => user_id) }
}

async function heroesOf(
  { own, by }: SlidingLook,
  room: Room,
  state: StateMap,
): Promise<(JsonObject & { readonly user_id: string })[]> {
  const heroes = await own.heroes(room.nid, by.userNid)
  const members = await Promise.all(heroes.map((userId) => room.stateEvent('m.room.member', userId, state)))
  return heroes.map((user_id, index) => {
    const displayname = displayNameOf(members[index])
    const avatar_url = avatarUrlOf(members[index])
    return {
      user_id,
      ...(displayname !== undefined && { displayname }),
      ...(avatar_url !== undefined && { avatar_url }),
    }
  })
}
