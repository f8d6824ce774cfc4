import { membershipOf } from '../../core/event/content.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { loadReferences } from '../rooms/client-event.ts'
import { encodePosition } from '../rooms/position-token.ts'
import type { Room } from '../rooms/room.ts'
import type { RoomEvent } from '../rooms/room-event.ts'
import { knownState } from './joined-room.ts'
import type { Look, RoomNews, Section } from './look.ts'
import { loadState, stateToTell, writeEventList } from './room-section.ts'
import { readTimeline, type TimelineSlice, visiblePart } from './room-timeline.ts'
import { type EventPosition, isNewer, writerOf } from './token.ts'

const DEFAULT_TIMELINE = 10

/** A room that the user left, was kicked or banned from: what happened up to then, and nothing after. */
export async function leftSection(look: Look, news: RoomNews): Promise<Section | undefined> {
  const { sources, request } = look
  const room = await sources.registry.getByNid(news.roomNid)
  if (!request.filter.room.roomMatches(room.id)) return undefined
  const leaving = (await sources.events.load([news.membership.eventNid])).get(news.membership.eventNid)
  if (!leaving) return undefined
  if (leaving.standing === 'outlier') return declinedSection(look, room, leaving)
  const departure = await departureOf(look, leaving)
  const isUndone = wasUndone(look, news, leaving)
  const end = isUndone ? news.membership.changedAt : departure?.streamPos
  const slice =
    end === undefined
      ? { events: [leaving], limited: false }
      : await lastTimeline(look, room, until(look.now.events, end))
  const tellsLeaving = isUndone ? membershipOf(leaving) !== 'join' : departure !== undefined && departure !== leaving
  const events = tellsLeaving ? [...slice.events, leaving] : slice.events
  await loadReferences(sources.events, events)
  const [first] = slice.events
  const before = await sources.states.before(room, first ?? departure ?? leaving)
  const known = request.fullState ? undefined : await knownState(look, room)
  const tellsState = first !== leaving || slice.limited
  const nids = tellsState
    ? stateToTell(look, room, {
        target: before,
        known,
        isFull: known === undefined,
        timeline: slice.events,
        heroes: [],
      })
    : []
  const out = new JsonBytes().text('{"timeline":{"events":')
  writeEventList(out, look, events)
  out.text(
    `,"limited":${slice.limited},"prev_batch":${JSON.stringify(encodePosition((first ?? departure ?? leaving).pos - 1))}}`,
  )
  out.text(',"state":{"events":')
  writeEventList(out, look, await loadState(look, nids)).text('}}')
  return { roomId: room.id, json: out }
}

/** A room that nobody here was in: an invitation was declined or taken back. */
function declinedSection(look: Look, room: Room, leaving: RoomEvent): Section {
  const out = new JsonBytes().text('{"timeline":{"events":')
  writeEventList(out, look, [leaving]).text(',"limited":false},"state":{"events":[]}}')
  return { roomId: room.id, json: out }
}

/** The user is out because branches of the room met: by an event that is older than what the client knows, or by none at all. */
function wasUndone({ since }: Look, { membership }: RoomNews, leaving: RoomEvent): boolean {
  return since !== undefined && membership.changedAt !== leaving.streamPos && !isNewer(leaving.streamPos, since.events)
}

/** The event that ended the user's being joined; undefined when the client knows of that. A kick may be followed by a ban. */
async function departureOf({ sources, since }: Look, leaving: RoomEvent): Promise<RoomEvent | undefined> {
  for (let at = leaving; at.replacesNid !== undefined; ) {
    const before = (await sources.events.load([at.replacesNid])).get(at.replacesNid)
    if (membershipOf(before) === 'join') return at
    if (!before || (since && !isNewer(before.streamPos, since.events))) return undefined
    at = before
  }
  return undefined
}

async function lastTimeline(look: Look, room: Room, upTo: EventPosition): Promise<TimelineSlice> {
  const { sources, by, since, request } = look
  const { timeline: filter } = request.filter.room
  const slice = await readTimeline(sources.db, sources.events, room, {
    since: since?.events,
    upTo,
    limit: Math.max(0, filter.limit ?? DEFAULT_TIMELINE),
    wants: filter.matchesAll
      ? undefined
      : (event) => filter.eventMatches({ type: event.type, sender: event.sender, content: event.content }),
  })
  return visiblePart(slice, await sources.visibleTo(by, room, slice.events))
}

/** A position that ends with an event. */
function until(position: EventPosition, eventNid: number): EventPosition {
  return position.with(writerOf(eventNid), eventNid)
}
