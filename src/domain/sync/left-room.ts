import { membershipOf } from '../../core/event/content.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { setState } from '../../core/state/trie.ts'
import { loadReferences } from '../rooms/room/client-event.ts'
import { encodePosition } from '../rooms/room/position-token.ts'
import type { Room } from '../rooms/room/room.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { beforeTimeline, knownState } from './joined-room.ts'
import type { Look, RoomNews, Section } from './look.ts'
import {
  type EventExtras,
  loadState,
  sendersOf,
  stateName,
  stateToSend,
  writeEventList,
  writeState,
} from './room-section.ts'
import type { TimelineSlice } from './room-timeline.ts'
import { isWanted, shownTimeline } from './shown-timeline.ts'
import { type EventPosition, isNewer, writerOf } from './token.ts'

/** A room that the user left, or was kicked or banned from: what happened up to then, and nothing after. */
export async function leftSection(look: Look, news: RoomNews): Promise<Section | undefined> {
  const { sources, request } = look
  const room = await sources.registry.getByNid(news.roomNid)
  if (!request.filter.room.roomMatches(room.id)) return undefined
  const leaving = (await sources.events.load([news.membership.eventNid])).get(news.membership.eventNid)
  if (!leaving) return undefined
  if (leaving.standing === 'outlier') return declinedSection(look, room, leaving)
  const last = await lastTimeline(look, news, room, leaving)
  const { slice, end, unshown, departure } = last
  const nids =
    end === undefined
      ? nidsOf(look, room, unshown)
      : await stateUntil(look, room, { slice, end, unshown, begin: slice.events[0] ?? departure ?? leaving })
  const out = new JsonBytes().text('{"timeline":{"events":')
  writeEventList(out, look, last.shown, last.extras)
  out.text(`,"limited":${slice.limited},"prev_batch":${JSON.stringify(encodePosition(last.before))}}`)
  out.text(`,"${stateName(look)}":{"events":`)
  writeState(out, look, await loadState(look, room, nids)).text('}}')
  return { roomId: room.id, write: (answer) => void answer.append(out) }
}

/** The end of a room's timeline, as a user saw it who is out of the room. */
export interface LastTimeline {
  readonly slice: TimelineSlice
  /** The slice, and the leave if that is not part of it. */
  readonly shown: readonly RoomEvent[]
  /** The leave, if the state has to show it. */
  readonly unshown: RoomEvent | undefined
  /** The stream position up to which the user was in the room; undefined if the client knows that they are out of it. */
  readonly end: number | undefined
  /** The event that ended the user's join. */
  readonly departure: RoomEvent | undefined
  /** The timeline position at which earlier events continue. */
  readonly before: number
  readonly extras: EventExtras
}

export async function lastTimeline(
  look: Look,
  news: Pick<RoomNews, 'membership'>,
  room: Room,
  leaving: RoomEvent,
): Promise<LastTimeline> {
  const { sources } = look
  const { changedAt } = news.membership
  const wasResolved = wasUndone(look, news, leaving)
  const before = wasResolved ? await memberBefore(look, room, changedAt) : undefined
  // Who was out already when their leave was undone has seen nothing since that leave.
  const isUndone = wasResolved && membershipOf(before) === 'join'
  const wasOut = ['leave', 'ban'].includes(membershipOf(before))
  const leave = before && wasOut ? before : leaving
  const departure = membershipOf(leave) === 'join' ? undefined : await departureOf(look, room, leave)
  const end = isUndone ? changedAt : departure?.streamPos
  const slice = end === undefined ? NOTHING : await timelineUntil(look, room, end, isUndone ? undefined : departure)
  const isApart = membershipOf(leave) !== 'join' && (end === undefined || isUndone || departure !== leave)
  const shown = isApart && isWanted(look, room, leave) ? [...slice.events, leave] : slice.events
  const [membershipAt, relations] = await Promise.all([
    sources.membershipsAt(look.by, room, shown),
    slice.limited ? sources.bundle({ viewer: look.by, upTo: leave.pos }, room, shown) : undefined,
    loadReferences(sources.events, shown),
  ])
  const [first] = slice.events
  // With the state after the timeline, the client reads no state from the timeline itself.
  const unshown = isApart && (look.request.stateAfter || !shown.includes(leave)) ? leave : undefined
  const continues = first ? first.pos - 1 : (departure ?? leave).pos - (shown.length > 0 ? 1 : 0)
  return { slice, shown, unshown, end, departure, before: continues, extras: { membershipAt, relations } }
}

const NOTHING: TimelineSlice = { events: [], limited: false }

function nidsOf({ request }: Look, room: Room, unshown: RoomEvent | undefined): number[] {
  return unshown && request.filter.room.state.roomMatches(room.id) ? [unshown.nid] : []
}

/** What the user saw of the room until they left. */
function timelineUntil(
  look: Look,
  room: Room,
  end: number,
  departure: RoomEvent | undefined,
): TimelineSlice | Promise<TimelineSlice> {
  const { since, now } = look
  const below = departure?.isInTimeline && !departure.isHistory ? { below: departure.pos + 1 } : {}
  const seesFrom = Number.POSITIVE_INFINITY
  return shownTimeline(look, room, { since: since?.events, upTo: until(now.events, end), seesFrom, ...below })
}

/** The state when the user left, with the leave itself if the timeline does not show it. */
async function stateUntil(
  look: Look,
  room: Room,
  {
    slice,
    end,
    unshown,
    begin,
  }: { slice: TimelineSlice; end: number; unshown: RoomEvent | undefined; begin: RoomEvent },
): Promise<number[]> {
  const { states } = look.sources
  const [before, after, known] = await Promise.all([
    states.before(room, begin),
    states.at(room, until(look.now.events, end)),
    knownState(look, room),
  ])
  const leadingTo = look.request.stateAfter ? after : beforeTimeline(before, slice, after)
  const target = unshown?.keyId === undefined ? leadingTo : setState(leadingTo, unshown.keyId, unshown.nid)
  const isFull = known === undefined || look.request.fullState
  return stateToSend(look, room, { target, known, isFull, senders: () => sendersOf(room, slice.events), heroes: [] })
}

/** A room that this server was never in: an invitation was declined or withdrawn. */
function declinedSection(look: Look, room: Room, leaving: RoomEvent): Section {
  const out = new JsonBytes().text('{"timeline":{"events":')
  writeEventList(out, look, [leaving]).text(`,"limited":false},"${stateName(look)}":{"events":`)
  writeEventList(out, look, look.request.stateAfter ? [leaving] : []).text('}}')
  return { roomId: room.id, write: (answer) => void answer.append(out) }
}

/** Whether state resolution took the user out of the room: by an event that is older than the client's position, or by none at all. */
function wasUndone({ since }: Look, { membership }: Pick<RoomNews, 'membership'>, leaving: RoomEvent): boolean {
  if (membershipOf(leaving) === 'join') return true
  return since !== undefined && membership.changedAt !== leaving.streamPos && !isNewer(leaving.streamPos, since.events)
}

/** The event that ended the user's join; undefined when the client already knows it. A ban may follow a kick. */
async function departureOf(look: Look, room: Room, leaving: RoomEvent): Promise<RoomEvent | undefined> {
  const { sources, since } = look
  // What came late may follow, by its branch, what it is followed by here.
  const passed = new Set([leaving.nid])
  for (let at = leaving; ; ) {
    const nid = await replacedBy(look, room, at)
    if (nid === undefined || passed.has(nid)) return undefined
    passed.add(nid)
    const before = (await sources.events.load([nid])).get(nid)
    if (membershipOf(before) === 'join') return at
    if (!before || (since && !isNewer(before.streamPos, since.events))) return undefined
    at = before
  }
}

/**
 * The user's member event in the room until this one came. Who made this one may not have heard of it: they may ban somebody, in their
 * branch of the room still in it, who left before.
 */
async function replacedBy(look: Look, room: Room, event: RoomEvent): Promise<number | undefined> {
  if (event.isOnTip || !event.isInTimeline || event.isHistory) return event.replacesNid
  return (await memberBefore(look, room, event.streamPos))?.nid
}

/** The user's member event in the room right before a stream position. */
async function memberBefore({ sources, by, now }: Look, room: Room, position: number): Promise<RoomEvent | undefined> {
  const then = await sources.states.at(room, until(now.events, position - 1))
  const nid = room.stateNid(then, 'm.room.member', by.userId)
  return nid === 0 ? undefined : (await sources.events.load([nid])).get(nid)
}

/** A position that ends with an event. */
export function until(position: EventPosition, eventNid: number): EventPosition {
  return position.with(writerOf(eventNid), eventNid)
}
