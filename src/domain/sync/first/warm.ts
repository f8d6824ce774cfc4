import type { UserId } from '../../../core/ids.ts'
import { forEachState } from '../../../core/state/trie.ts'
import type { Database, Reader } from '../../../store/db/db.ts'
import type { EventRow } from '../../../store/events/events.ts'
import {
  getFirstTimelines,
  getRecentTimelines,
  type TimelineText,
  withOwnText,
} from '../../../store/events/recent-timelines.ts'
import { MAX_ANSWER_PART_BYTES } from '../../limits.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import type { Look } from '../look.ts'
import { sendersOf } from '../room-section.ts'
import { limitOf, wantsAll } from '../shown-timeline.ts'
import { firstWritten, sharesSections } from './first-sections.ts'
import { keepStraight } from './straight.ts'
import { mayBeStraight, type StraightRoom, writeStraightStates } from './straight-state.ts'

/** How many rooms are read side by side: enough to fill the database's pipeline, few enough to bound memory. */
export const ROOMS_AT_ONCE = 200
/** How many events per room a first sync loads ahead. */
const MAX_WARMED_EVENTS = 64
/** Of a room with more state, nothing is read ahead. */
const MAX_STATE_AHEAD = 512
/** More events than this are read where small reads do not wait behind them. */
const MANY_EVENTS = 256
/** Of so many rooms timelines are read together. While they are taken in, the database reads those of the next ones. */
const ROOMS_IN_PIECE = 50
/** So many pieces are on their way at once: the database goes on to the next while the server takes one in. */
const PIECES_AT_ONCE = 2

/**
 * Opens a connection for timelines, if none is open, and has the database plan how to read them. To be called while the server starts: that
 * takes longer than all that a first sync does until it reads them. And as soon as it is known that rooms will be read, for a connection that
 * was lost since.
 */
export function planTimelines(db: Pick<Database, 'bulk'>): void {
  // If it fails, the first reader hears of it.
  getFirstTimelines(db.bulk, [], 1, 0).catch(() => {})
  getRecentTimelines(db.bulk, [], 1).catch(() => {})
}

/**
 * Loads what a sync needs of many rooms that are new to it at once, instead of room by room.
 *
 * @param isFirst whether it is a first sync of classic sync: what that shows of the rooms is read too, while the timelines are on their way
 */
export async function warm(look: Look, roomNids: readonly number[], isFirst = false): Promise<void> {
  const { sources, by } = look
  const { registry, unread } = sources
  const begun: (Promise<void> | undefined)[] = []
  const load = async (nid: number): Promise<Room> => {
    const room = registry.peekAlive(nid) ?? (await registry.getByNid(nid))
    // Otherwise it is written with the timeline, if that can be.
    if (isFirst && begun.length < ROOMS_AT_ONCE && !mayBeStraight(look, room)) begun.push(beginState(look, room))
    return room
  }
  const cold = roomNids.filter((nid) => {
    const room = registry.peekAlive(nid)
    return room === undefined || (room.timeline.length === 0 && !(isFirst && firstWritten(look, room)))
  })
  const rooms = cold.map(load)
  const loading = Promise.all(rooms)
  const reading = readTimelinesOnce(look, cold, rooms, isFirst)
  // The rooms are asked for first: more depends on them.
  const counting =
    cold.length === 0 ? unread.know(by.userNid, roomNids) : loading.then(() => unread.know(by.userNid, roomNids))
  await Promise.all([loading, counting, reading])
  await Promise.all(begun)
}

/** Reads timelines that nobody else is reading, and waits for the others. @param rooms those with these numbers */
async function readTimelinesOnce(
  look: Look,
  nids: readonly number[],
  rooms: readonly Promise<Room>[],
  isFirst: boolean,
): Promise<void> {
  const reads = look.sources.timelineReads
  // A reader who wants all events need not see one more to know that there are more.
  const limit = Math.min(Math.max(1, limitOf(look) + (wantsAll(look) ? 0 : 1)), MAX_WARMED_EVENTS)
  const others = new Set<Promise<void>>()
  const othersRooms: Promise<Room>[] = []
  const own: number[] = []
  const ownRooms: Promise<Room>[] = []
  nids.forEach((nid, index) => {
    const read = reads.get(nid)
    if (read !== undefined && read.limit >= limit) {
      others.add(read.done)
      othersRooms.push(rooms[index]!)
    } else {
      own.push(nid)
      ownRooms.push(rooms[index]!)
    }
  })
  const reading = readTimelines(look, own, ownRooms, { limit, isFirst })
  // Whose reader fails is read again with its room.
  const read = { limit, done: reading.catch(() => {}) }
  for (const nid of own) reads.set(nid, read)
  try {
    await reading
  } finally {
    for (const nid of own) if (reads.get(nid) === read) reads.delete(nid)
  }
  await Promise.all(others)
  if (!isFirst || othersRooms.length === 0) return
  // They may have wanted less of the states.
  const shared = (await Promise.all(othersRooms)).filter((room) => mayBeStraight(look, room))
  await Promise.all(shared.map((room) => (firstWritten(look, room)?.state ? undefined : beginState(look, room))))
}

async function readTimelines(
  look: Look,
  nids: readonly number[],
  rooms: readonly Promise<Room>[],
  { limit, isFirst }: { readonly limit: number; readonly isFirst: boolean },
): Promise<void> {
  const { request, sources } = look
  const reader = nids.length * limit > MANY_EVENTS ? sources.db.bulk : sources.db
  const mayBeText = isFirst && sharesSections(look)
  const read = (some: readonly number[]): Promise<ReadonlyMap<number, EventRow[] | TimelineText>> =>
    mayBeText ? getFirstTimelines(reader, some, limit, look.timeMs) : getRecentTimelines(reader, some, limit)
  const isLazy = request.filter.room.state.lazyLoadMembers
  const begun: (Promise<void> | undefined)[] = []
  const take = (room: Room, rows: readonly EventRow[]) => {
    const events = adoptTimeline(look, room, rows)
    if (isFirst && mayBeStraight(look, room)) begun.push(beginState(look, room))
    if (isLazy) begun.push(beginSenders(look, room, sendersOf(room, events)))
  }
  for await (const { place, found } of inPieces(nids, read)) {
    await Promise.all(rooms.slice(place, place + ROOMS_IN_PIECE))
    const straight: StraightRoom[] = []
    const others: number[] = []
    for (const [nid, timeline] of found) {
      const room = sources.registry.peekAlive(nid)
      if (room === undefined) continue
      if (!('json' in timeline)) {
        take(room, timeline)
        continue
      }
      const senders = keepStraight(look, room, timeline)
      if (senders === undefined) others.push(nid)
      else if (mayBeStraight(look, room)) straight.push({ room, senders })
    }
    if (straight.length > 0) begun.push(readStates(look, straight, reader))
    if (others.length === 0) continue
    for (const [nid, rows] of await getRecentTimelines(reader, others, limit)) {
      const room = sources.registry.peekAlive(nid)
      if (room) take(room, rows)
    }
  }
  await Promise.all(begun)
}

/** Reads rooms in pieces, of which a few are on their way at once. */
async function* inPieces<Found>(nids: readonly number[], read: (some: readonly number[]) => Promise<Found>) {
  const reading: Promise<Found>[] = []
  for (let place = 0, asked = 0; place < nids.length; place += ROOMS_IN_PIECE) {
    for (; asked < nids.length && reading.length < PIECES_AT_ONCE; asked += ROOMS_IN_PIECE) {
      const piece = read(nids.slice(asked, asked + ROOMS_IN_PIECE))
      // If those before it fail, nobody waits for it.
      piece.catch(() => {})
      reading.push(piece)
    }
    yield { place, found: await reading.shift()! }
  }
}

/** Has the states of rooms written whose timelines are, or else loaded. */
async function readStates(look: Look, rooms: readonly StraightRoom[], reader: Reader): Promise<void> {
  const { by, request } = look
  const isLazy = request.filter.room.state.lazyLoadMembers
  const silent = isLazy ? rooms.filter(({ senders }) => !senders.includes(by.userId)) : []
  const own = silent.map(({ room }) => room.stateNid(room.committed.state, 'm.room.member', by.userId))
  const loadingOwn = begin(look, own)
  // Whoever needs a state that could not be read hears of it then.
  const left = await writeStraightStates(look, rooms, reader).catch(() => rooms)
  const loading = left.flatMap(({ room, senders }) => [
    beginState(look, room),
    isLazy ? beginSenders(look, room, senders) : undefined,
  ])
  await Promise.all([loadingOwn, ...loading])
}

/** Gives the events, oldest first. */
function adoptTimeline({ sources }: Look, room: Room, rows: readonly EventRow[]): readonly RoomEvent[] {
  const timeline = rows.map((row) => sources.events.adopt(withOwnText(row))).reverse()
  room.extendTimeline(timeline)
  return timeline
}

/** Begins to load the members who sent the events of a timeline. */
function beginSenders(look: Look, room: Room, senders: readonly UserId[]): Promise<void> | undefined {
  const nids: number[] = []
  for (const userId of senders) {
    const nid = room.stateNid(room.committed.state, 'm.room.member', userId)
    // The reader's own was begun with the state.
    if (nid !== 0 && userId !== look.by.userId) nids.push(nid)
  }
  return begin(look, nids)
}

/** Begins to load the state of a room that a first sync shows whatever is in the timeline. */
function beginState(look: Look, room: Room): Promise<void> | undefined {
  const { committed, keys } = room
  const { by, request } = look
  const { state: filter } = request.filter.room
  if (committed.state.size > MAX_STATE_AHEAD || !filter.roomMatches(room.id)) return undefined
  const nids: number[] = []
  forEachState(committed.state, (keyId, nid) => {
    const { type, stateKey } = keys.nameOf(keyId)
    if (!filter.lazyLoadMembers || type !== 'm.room.member' || stateKey === by.userId) nids.push(nid)
  })
  return begin(look, nids)
}

function begin({ sources }: Look, nids: readonly number[]): Promise<void> | undefined {
  const loading = sources.events.loadWithin(nids, MAX_ANSWER_PART_BYTES)
  if (!(loading instanceof Promise)) return undefined
  // Whoever needs an event that could not be read hears of it then.
  return loading.then(
    () => {},
    () => {},
  )
}
