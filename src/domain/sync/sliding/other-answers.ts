import { membershipOf } from '../../../core/event/content.ts'
import { JsonBytes } from '../../../core/json-bytes.ts'
import { writeJson } from '../../../core/large-integers.ts'
import { type StateMap, setState } from '../../../core/state/trie.ts'
import { loadReferences, strippedState } from '../../rooms/room/client-event.ts'
import { encodePosition } from '../../rooms/room/position-token.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import { invitedState } from '../invited-room.ts'
import { knownState } from '../joined-room.ts'
import { type LastTimeline, lastTimeline, until } from '../left-room.ts'
import { loadState, writeEventList, writeState } from '../room-section.ts'
import { isNewer } from '../token.ts'
import { roomLook, type SlidingLook, sentUpTo } from './look.ts'
import { endWithLeave, ownLeave } from './own-leave.ts'
import { liveIn, type RoomAnswer, sentNow, writeCommon } from './room-answer.ts'
import { namesIn } from './room-names.ts'
import { type StateChanges, stateChanges } from './state-changes.ts'
import type { WantedRoom } from './windows.ts'

/** What a client needs of a room that the user is not in. */
export async function otherAnswer(look: SlidingLook, wanted: WantedRoom): Promise<RoomAnswer> {
  const { nid, membership, wasIn } = wanted.room
  const room = await look.sources.registry.getByNid(nid)
  const sent = look.record.rooms.get(nid)
  const now = sentNow(look, wanted, room.id)
  const since = sentUpTo(look, sent)
  const answer = { nid, roomId: room.id, sent: now, isBegun: sent === undefined, timeline: [], people: [] }
  if (since && !isNewer(membership.changedAt, since.events)) return { ...answer, json: undefined, isBegun: false }
  const isOutside = membership.membership === 'invite' || membership.membership === 'knock'
  if (isOutside) return { ...answer, json: await invited(look, wanted, room) }
  const leaving = (await look.sources.events.load([membership.eventNid])).get(membership.eventNid)
  if (leaving === undefined) return { ...answer, json: undefined }
  const { timelineLimit } = wanted.wish
  const isElsewhere = leaving.standing === 'outlier'
  // State resolution may leave a membership of long ago to somebody who was in until now.
  const known = isElsewhere ? undefined : since && (await knownState(roomLook(look, since, timelineLimit), room))
  if ((!wasIn && known === undefined) || isElsewhere)
    return { ...answer, json: await declined(look, wanted, room, leaving) }
  // A client that has no state begins with the room, whatever it was sent before.
  const view = roomLook(look, known && since, timelineLimit)
  const last = await lastTimeline(view, wanted.room, room, leaving)
  return { ...answer, json: await departed(view, wanted, room, { leaving, last, known }), timeline: last.shown }
}

function begin(look: SlidingLook, wanted: WantedRoom): JsonBytes {
  return writeCommon(new JsonBytes(), look, wanted, wanted.room.membership.changedAt)
}

/** An invitation or a knock: some state by which to recognise the room. */
async function invited(look: SlidingLook, wanted: WantedRoom, room: Room): Promise<JsonBytes> {
  const { shape } = look.sliding
  const [state, member] = await invitedState(look, room, wanted.room.membership.eventNid)
  const events = member ? [...state, strippedState(member)] : state
  const out = begin(look, wanted)
  // Clients of the earlier text drop rooms that they do not know, unless these are initial.
  if (!shape.hasMembership) out.text(',"initial":true')
  return out.text(`,"${shape.strippedState}":${writeJson(events)}}`)
}

/** An invitation was declined or withdrawn, or a knock: the user was never in the room. */
async function declined(look: SlidingLook, wanted: WantedRoom, room: Room, leaving: RoomEvent): Promise<JsonBytes> {
  const out = begin(look, wanted)
  const { hasMembership, strippedState: name } = look.sliding.shape
  if (!isOut(leaving)) return endWithLeave(out, look, room.id)
  if (hasMembership) return out.text(`,"${name}":${writeJson([strippedState(leaving)])}}`)
  await loadReferences(look.sources.events, [leaving])
  writeEventList(out.text(',"required_state":'), look, [leaving])
  return writeEventList(out.text(',"timeline":'), look, [leaving]).text('}')
}

/** False where state resolution took a membership away altogether: its last event is the one that had set it. */
function isOut(leaving: RoomEvent): boolean {
  const membership = membershipOf(leaving)
  return membership === 'leave' || membership === 'ban'
}

interface Ending {
  readonly leaving: RoomEvent
  readonly last: LastTimeline
  /** The state that the client has; undefined if it begins with the room. */
  readonly known: StateMap | undefined
}

/** The user left, or others took them out: what happened up to then, and nothing after. */
async function departed(view: SlidingLook, wanted: WantedRoom, room: Room, departure: Ending): Promise<JsonBytes> {
  const { shape } = view.sliding
  const { leaving, last, known } = departure
  const { slice, shown } = last
  const isInitial = known === undefined && last.end !== undefined
  const end = last.end === undefined ? undefined : await stateUntil(view, room, leaving, last.end)
  const changes = end ? changesUntil(view, wanted, room, { ...departure, end }) : NO_CHANGES
  const nids = new Set(changes.nids)
  // Without a membership field, clients learn of it from the state alone.
  if (isOut(leaving) && (!shape.hasMembership || last.end === undefined)) nids.add(leaving.nid)
  const removed = shape.showsRemoved
    ? changes.removed.map(({ type, stateKey }) => JSON.stringify({ type, state_key: stateKey }))
    : []
  if (!isOut(leaving) && !shape.hasMembership) removed.push(ownLeave(view, room.id))
  const out = begin(view, wanted)
  if (isInitial) out.text(',"initial":true')
  if (end) out.text((await namesIn(view, room, end, changes)).json)
  writeState(out.text(',"required_state":'), view, await loadState(view, room, [...nids]), removed)
  writeEventList(out.text(',"timeline":'), view, shown, last.extras)
  out.text(`,"num_live":${liveIn(view, shown)},"limited":${slice.limited}`)
  return out.text(`,"prev_batch":${JSON.stringify(encodePosition(last.before))}}`)
}

const NO_CHANGES = { nids: new Set<number>(), removed: [], types: undefined }

/** The state up to the leave, and the leave. */
async function stateUntil(
  view: SlidingLook,
  room: Room,
  leaving: RoomEvent,
  end: NonNullable<LastTimeline['end']>,
): Promise<StateMap> {
  const then = await view.sources.states.at(room, until(view.now.events, end))
  return leaving.keyId === undefined || !isOut(leaving) ? then : setState(then, leaving.keyId, leaving.nid)
}

function changesUntil(
  view: SlidingLook,
  { wish }: WantedRoom,
  room: Room,
  { last, known, end }: Ending & { readonly end: StateMap },
): StateChanges {
  const requiredBefore = known && view.record.rooms.get(room.nid)?.required
  const { shown: timeline } = last
  const { limited } = last.slice
  const since = view.since?.events
  const isRecorded = true
  return stateChanges(view, room, {
    known,
    end,
    required: wish.required,
    requiredBefore,
    timeline,
    limited,
    isRecorded,
    since,
  })
}
