import { type EventId, isEventId } from '../../../core/ids.ts'
import { isObject } from '../../../core/json.ts'
import type { EventCache } from './event-cache.ts'
import type { Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'

/** The thread of what is in no thread. */
export const MAIN_THREAD = 'main'

/** The most relations that are followed from an event to its thread, for example from an edit of a reply in it. */
const MAX_HOPS = 3

/** What an event relates to. State events are in no thread, whatever they say. */
function relationOf({ isState, content }: Pick<RoomEvent, 'isState' | 'content'>) {
  const relation = isState ? undefined : content['m.relates_to']
  if (!isObject(relation) || !isEventId(relation.event_id)) return undefined
  return { isThread: relation.rel_type === 'm.thread', targetId: relation.event_id }
}

/** The root of the thread that an event says itself that it is in. */
export function namedThread(event: RoomEvent): string | undefined {
  const relation = relationOf(event)
  return relation?.isThread ? relation.targetId : undefined
}

/**
 * The root of the thread that a new event is in; undefined for the main timeline. Synchronous where its own relation decides.
 */
export function rootOf(
  room: Room,
  events: Pick<EventCache, 'getById'>,
  event: Pick<RoomEvent, 'isState' | 'content'>,
): string | undefined | Promise<string | undefined> {
  const relation = relationOf(event)
  if (!relation) return undefined
  return relation.isThread ? relation.targetId : rootBehind(room, events, relation.targetId)
}

async function rootBehind(room: Room, events: Pick<EventCache, 'getById'>, first: string): Promise<string | undefined> {
  let targetId = first
  for (let hop = 1; hop < MAX_HOPS; hop++) {
    const target = room.unsettled(targetId as EventId) ?? (await events.getById(targetId))
    const relation = target?.roomNid === room.nid ? relationOf(target) : undefined
    if (!relation) return undefined
    if (relation.isThread) return relation.targetId
    targetId = relation.targetId
  }
  return undefined
}

/**
 * Whether a receipt for a thread may be at an event (client-server API, "Threaded read receipts"). The root of a thread, and what relates to
 * it otherwise, belong to the main timeline; as others do, receipts for the thread are accepted there too.
 *
 * @param threadId the thread's root, or `main`
 */
export async function isInThread(
  events: Pick<EventCache, 'getById'>,
  event: RoomEvent,
  threadId: string,
): Promise<boolean> {
  if (event.id === threadId) return true
  let at: RoomEvent | undefined = event
  for (let hop = 0; at && hop < MAX_HOPS; hop++) {
    const relation = relationOf(at)
    if (!relation) break
    if (relation.targetId === threadId) return true
    if (relation.isThread) return false
    const target: RoomEvent | undefined = await events.getById(relation.targetId)
    at = target?.roomNid === event.roomNid ? target : undefined
  }
  return threadId === MAIN_THREAD
}
