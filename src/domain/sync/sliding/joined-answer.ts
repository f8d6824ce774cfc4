import { avatarUrlOf, displayNameOf } from '../../../core/event/content.ts'
import type { JsonObject } from '../../../core/json.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import { loadReferences } from '../../rooms/room/client-event.ts'
import { encodePosition } from '../../rooms/room/position-token.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import { knownState, notifiableAt, stateNow, writeTimelineEvents } from '../joined-room.ts'
import { wasResyncedWithin } from '../look.ts'
import { bundleReader, loadState, writeState } from '../room-section.ts'
import type { TimelineSlice } from '../room-timeline.ts'
import { shownTimeline } from '../shown-timeline.ts'
import { isNewer } from '../token.ts'
import { totalOf } from '../unread-mark.ts'
import { roomLook, type SlidingLook, sentUpTo } from './look.ts'
import { isSameRoom, type SentRoom } from './record.ts'
import { liveIn, type RoomAnswer, sentNow, writeCommon } from './room-answer.ts'
import { namesIn } from './room-names.ts'
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

/** What a client needs of a room that the user is in. */
export async function joinedAnswer(look: SlidingLook, wanted: WantedRoom, hints: RoomHints): Promise<RoomAnswer> {
  const { nid } = wanted.room
  const room = look.sources.registry.peekAlive(nid) ?? (await look.sources.registry.getByNid(nid))
  const sent = look.record.rooms.get(nid)
  const view = roomLook(look, sentUpTo(look, sent), wanted.wish.timelineLimit)
  const taking = takeCourse(view, wanted, sent, room)
  const course = taking instanceof Promise ? await taking : taking
  return writeAnswer(view, wanted, room, course, hints)
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

async function takeCourse(
  view: SlidingLook,
  { wish }: WantedRoom,
  sent: SentRoom | undefined,
  room: Room,
): Promise<Course> {
  const wasResynced = wasResyncedWithin(view, room.nid)
  const startsOver = sent === undefined || (wasResynced && !wish.required.isLazy)
  const knowing = startsOver ? undefined : knownState(view, room)
  const known = knowing instanceof Promise ? await knowing : knowing
  const isWider = known !== undefined && sent !== undefined && wish.timelineLimit > sent.timelineLimit
  const since = known === undefined || isWider ? undefined : view.since?.events
  const seesFrom = room.localMembers.get(view.by.userNid)?.since ?? Number.POSITIVE_INFINITY
  const reading = shownTimeline(view, room, { since, upTo: view.now.events, seesFrom })
  const slice = reading instanceof Promise ? await reading : reading
  if (!isWider) return { sent, known, slice, isExpanded: false, wasResynced }
  const fresh = slice.events.filter(({ streamPos }) => isNewer(streamPos, view.since!.events))
  if (fresh.length === slice.events.length && slice.limited) {
    // Nothing of it was sent before: it is an answer like any other.
    const reading = shownTimeline(view, room, { since: view.since!.events, upTo: view.now.events, seesFrom })
    return { sent, known, slice: await reading, isExpanded: false, wasResynced }
  }
  const isExpanded = slice.events.length - fresh.length > sent.timelineLimit
  // The client has all there was: only what came since is new.
  return { sent, known, slice: isExpanded ? slice : { events: fresh, limited: false }, isExpanded, wasResynced }
}

async function writeAnswer(
  view: SlidingLook,
  wanted: WantedRoom,
  room: Room,
  course: Course,
  hints: RoomHints,
): Promise<RoomAnswer> {
  const { sources, own, by, sliding, direct } = view
  const { shape } = sliding
  const { wish } = wanted
  const { sent, known, slice, isExpanded, wasResynced } = course
  const isInitial = known === undefined
  const ownMembership = sources.membershipsAt(by, room, slice.events)
  const membershipAt = typeof ownMembership === 'function' ? ownMembership : await ownMembership
  const loading = loadReferences(sources.events, slice.events)
  if (loading) await loading
  const relations = slice.limited ? await sources.bundle(bundleReader(view), room, slice.events) : undefined
  const ending = stateNow(view, room)
  const end = ending instanceof Promise ? await ending : ending
  const now = sentNow(view, wanted, room.id, knownLimit(wanted, course))
  const changes = stateChanges(view, room, {
    known,
    end,
    required: wish.required,
    requiredBefore: isInitial ? undefined : sent?.required,
    timeline: slice.events,
    limited: slice.limited,
    isRecorded: sent === undefined || !isSameRoom(sent, now),
    since: view.since?.events,
  })
  const state =
    changes.nids.size === 0 ? { room, events: [], left: [] } : await loadState(view, room, [...changes.nids])
  const removed = shape.showsRemoved
    ? changes.removed.map(({ type, stateKey }) => JSON.stringify({ type, state_key: stateKey }))
    : []
  const isDirect = direct.has(room.id)
  const becameDirect = isInitial ? isDirect : sent?.isDirect !== isDirect
  const hasNews =
    isInitial || wasResynced || becameDirect || hints.movesUnread || slice.limited || slice.events.length > 0
  const summary = isSummedUp(changes, slice, wasResynced) ? await summaryOf(view, room, end, changes) : NO_SUMMARY
  if (!hasNews && changes.nids.size + removed.length === 0 && summary.json === '') return nothingFor(room, now)
  const stamping = own.bumpStamps(room)
  const out = writeCommon(new JsonBytes(), view, wanted, stamping instanceof Promise ? await stamping : stamping)
  if (isInitial) out.text(',"initial":true')
  out.text(summary.json)
  if (becameDirect) out.text(`,"is_dm":${isDirect}`)
  if (isExpanded) out.text(`,"${shape.expandedTimeline}":true`)
  if (state.events.length + state.left.length + removed.length > 0 || isInitial) {
    writeState(out.text(',"required_state":'), view, state, removed)
  }
  if (slice.events.length > 0 || slice.limited || isInitial) {
    writeTimelineEvents(out.text(',"timeline":'), view, room, slice.events, { membershipAt, relations })
    out.text(`,"num_live":${liveIn(view, slice.events)}`)
    const before = slice.events[0] ? slice.events[0].pos - 1 : room.committed.pos
    out.text(`,"limited":${slice.limited},"prev_batch":${JSON.stringify(encodePosition(before))}`)
  }
  if (shape.hasUnread) {
    const counting = sources.unread.count(by.userNid, room.nid, notifiableAt(view, room))
    const { notification_count, highlight_count } = totalOf(counting instanceof Promise ? await counting : counting)
    out.text(`,"notification_count":${notification_count},"highlight_count":${highlight_count}`)
  }
  out.text('}')
  return {
    nid: room.nid,
    roomId: room.id,
    json: out,
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
