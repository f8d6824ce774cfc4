import { membershipOf } from '../../core/event/content.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { loadReferences } from '../rooms/client-event.ts'
import { encodePosition } from '../rooms/position-token.ts'
import type { Room } from '../rooms/room.ts'
import type { RoomEvent } from '../rooms/room-event.ts'
import type { Look, RoomNews, Section } from './look.ts'
import { loadState, stateToTell, writeEventList } from './room-section.ts'
import { readTimeline, type TimelineSlice } from './room-timeline.ts'
import { type EventPosition, writerOf } from './token.ts'

const DEFAULT_TIMELINE = 10

/** A room that the user left, was kicked or banned from: what happened up to then, and nothing after. */
export async function leftSection(look: Look, news: RoomNews): Promise<Section | undefined> {
  const { sources, since, request } = look
  const room = await sources.registry.getByNid(news.roomNid)
  if (!request.filter.room.roomMatches(room.id)) return undefined
  const leaving = (await sources.events.load([news.membership.eventNid])).get(news.membership.eventNid)
  if (!leaving) return undefined
  const upTo = until(look.now.events, leaving.nid)
  const slice = (await wasJoined(look, leaving))
    ? await lastTimeline(look, room, upTo)
    : { events: [leaving], limited: false }
  await loadReferences(sources.events, slice.events)
  const [first] = slice.events
  const before = await sources.states.before(room, first ?? leaving)
  const known = since && !request.fullState ? await sources.states.at(room, since.events) : undefined
  const tellsState = first !== leaving || slice.limited
  const nids = tellsState ? stateToTell(look, room, { target: before, known, timeline: slice.events, heroes: [] }) : []
  const out = new JsonBytes().text('{"timeline":{"events":')
  writeEventList(out, look, slice.events)
  out.text(`,"limited":${slice.limited},"prev_batch":${JSON.stringify(encodePosition((first ?? leaving).pos - 1))}}`)
  out.text(',"state":{"events":')
  writeEventList(out, look, await loadState(look, nids)).text('}}')
  return { roomId: room.id, json: out }
}

async function wasJoined({ sources }: Look, leaving: RoomEvent): Promise<boolean> {
  if (leaving.replacesNid === undefined) return false
  const before = (await sources.events.load([leaving.replacesNid])).get(leaving.replacesNid)
  return membershipOf(before) === 'join'
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
  return { ...slice, events: await sources.visibleTo(by, room, slice.events) }
}

/** A position that ends with an event. */
function until(position: EventPosition, eventNid: number): EventPosition {
  return position.with(writerOf(eventNid), eventNid)
}
