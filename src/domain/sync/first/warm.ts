import { groupBy } from '../../../core/group-by.ts'
import { forEachState } from '../../../core/state/trie.ts'
import { getRecentTimelines } from '../../../store/events/events.ts'
import { MAX_ANSWER_PART_BYTES } from '../../limits.ts'
import type { Room } from '../../rooms/room/room.ts'
import type { RoomEvent } from '../../rooms/room/room-event.ts'
import type { Look } from '../look.ts'

/** How many rooms are read side by side: enough to fill the database's pipeline, few enough to bound memory. */
export const ROOMS_AT_ONCE = 200
/** How many events per room a first sync loads ahead. */
const MAX_WARMED_EVENTS = 64
/** Of a room with more state, nothing is read ahead. */
const MAX_STATE_AHEAD = 512
/** More events than this are read where small reads do not wait behind them. */
const MANY_EVENTS = 256

const NO_EVENTS: readonly RoomEvent[] = []

/**
 * Loads what a sync needs of many rooms that are new to it at once, instead of room by room.
 *
 * @param arrived is told of the first rooms as soon as they are in memory, while the timelines are still on their way
 */
export async function warm(
  look: Look,
  roomNids: readonly number[],
  arrived?: (look: Look, room: Room) => void,
): Promise<void> {
  const { sources, by, request } = look
  const { registry, unread } = sources
  const cold = roomNids.filter((nid) => (registry.peekAlive(nid)?.timeline.length ?? 0) === 0)
  const limit = Math.min((request.filter.room.timeline.limit ?? 10) + 1, MAX_WARMED_EVENTS)
  const load = async (nid: number, place: number) => {
    const room = registry.peekAlive(nid) ?? (await registry.getByNid(nid))
    if (place < ROOMS_AT_ONCE) arrived?.(look, room)
  }
  const [newest] = await Promise.all([
    cold.length === 0 ? NO_EVENTS : newestEvents(look, cold, limit),
    unread.know(by.userNid, roomNids),
    ...cold.map(load),
  ])
  for (const [nid, timeline] of groupBy(newest, (event) => event.roomNid)) {
    registry.peekAlive(nid)?.extendTimeline(timeline.reverse())
  }
}

async function newestEvents(
  { sources: { db, events } }: Look,
  roomNids: readonly number[],
  limit: number,
): Promise<RoomEvent[]> {
  const reader = roomNids.length * limit > MANY_EVENTS ? db.bulk : db
  return (await getRecentTimelines(reader, roomNids, limit)).map((row) => events.adopt(row))
}

/** Begins to load the state of a room that a first sync shows whatever is in the timeline. */
export function beginState({ sources, by, request }: Look, room: Room): void {
  const { committed, keys } = room
  const { state: filter } = request.filter.room
  if (committed.state.size > MAX_STATE_AHEAD || !filter.roomMatches(room.id)) return
  const nids: number[] = []
  forEachState(committed.state, (keyId, nid) => {
    const { type, stateKey } = keys.nameOf(keyId)
    if (!filter.lazyLoadMembers || type !== 'm.room.member' || stateKey === by.userId) nids.push(nid)
  })
  const loading = sources.events.loadWithin(nids, MAX_ANSWER_PART_BYTES)
  // Whoever needs an event that could not be read hears of it then.
  if (loading instanceof Promise) loading.catch(() => {})
}
