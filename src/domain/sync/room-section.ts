import type { JsonObject } from '../../core/json.ts'
import type { JsonBytes } from '../../core/json-bytes.ts'
import { diffState, forEachState, type StateMap } from '../../core/state/trie.ts'
import { loadReferences, type MembershipAt, writeClientEvent } from '../rooms/client-event.ts'
import type { Room } from '../rooms/room.ts'
import type { RoomEvent } from '../rooms/room-event.ts'
import type { Look } from './look.ts'
import { projectEvent } from './project-event.ts'

/** Writes events in the format that the filter asks for. References of `events` must be loaded. */
export function writeEventList(
  out: JsonBytes,
  look: Look,
  events: readonly RoomEvent[],
  membershipAt?: MembershipAt,
): JsonBytes {
  const { filter } = look.request
  const plain = filter.eventFields === undefined && filter.eventFormat === 'client'
  const reading = { now: look.timeMs, tokenNid: look.by.tokenNid, membershipAt }
  out.text('[')
  events.forEach((event, index) => {
    if (index > 0) out.text(',')
    if (plain) writeClientEvent(out, event, reading)
    else out.value(projectEvent(event, look, reading))
  })
  return out.text(']')
}

/** The state that goes with a slice of timeline, by the filter; numbers of events. */
export interface StateWish {
  /** The state to tell. */
  readonly target: StateMap
  /** What the client knows already, if anything. */
  readonly known: StateMap | undefined
  /** Tell all of it nevertheless. */
  readonly isFull: boolean
  readonly timeline: readonly RoomEvent[]
  /** Those after whom a nameless room is called. */
  readonly heroes: readonly string[]
}

/** Which state events to tell: what changed, less the members that lazy loading leaves out, with those it needs. */
export function stateToTell(look: Look, room: Room, wish: StateWish): number[] {
  const { target, known, isFull } = wish
  const { state: filter } = look.request.filter.room
  if (!filter.roomMatches(room.id)) return []
  const nids = new Set<number>()
  // Members that changed are told whoever they are: the client may know them as they were.
  if (known) diffState(known, target, (_keyId, _before, nid) => nids.add(nid))
  const isLazy = filter.lazyLoadMembers
  const isTold = (keyId: number) => !isLazy || room.keys.nameOf(keyId).type !== 'm.room.member'
  if (isFull) forEachState(target, (keyId, nid) => void (isTold(keyId) && nids.add(nid)))
  if (isLazy) for (const nid of lazyMembers(look, room, wish)) nids.add(nid)
  nids.delete(0)
  return [...nids]
}

/** The members that the client needs to show this timeline and the room's name, less those it was told about as they are. */
function lazyMembers(look: Look, room: Room, { target, isFull, timeline, heroes }: StateWish): number[] {
  const { by, sources, request, now } = look
  // Who starts over is told all again.
  const since = isFull ? undefined : look.since?.events
  const told = sources.lazyMembers.of(by.tokenNid, room.nid, since)
  const needed = new Map<string, number>()
  for (const userId of [...timeline.map(({ sender }) => sender), ...heroes, ...(isFull ? [by.userId] : [])]) {
    const nid = room.stateNid(target, 'm.room.member', userId)
    const isRedundant = told.get(userId)?.nid === nid && !request.filter.room.state.includeRedundantMembers
    if (nid !== 0 && !isRedundant) needed.set(userId, nid)
  }
  sources.lazyMembers.tell(by.tokenNid, room.nid, since, needed, now.events)
  return [...needed.values()]
}

/** Loads state events, leaves out those that the filter does not want, and brings to hand what writing them needs. */
export async function loadState(look: Look, room: Room, nids: readonly number[]): Promise<RoomEvent[]> {
  if (nids.length === 0) return []
  const { events } = look.sources
  const { state: filter } = look.request.filter.room
  const loaded = [...(await events.load(nids)).values()]
  const matching = filter.matchesAll
    ? loaded
    : loaded.filter((event) => filter.eventMatches({ type: event.type, sender: event.sender, content: event.content }))
  const { relatedBy } = filter
  const wanted = relatedBy ? await look.sources.keepRelated(look.by, room, matching, relatedBy) : matching
  await loadReferences(events, wanted)
  return wanted.toSorted((left, right) => left.nid - right.nid)
}

export function eventList(events: readonly JsonObject[]): string {
  return `{"events":${JSON.stringify(events)}}`
}
