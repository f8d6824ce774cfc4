import { referencedId } from '../../../core/event/format.ts'
import type { EventId } from '../../../core/ids.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'

/** Those of some events that belong to a room, in the order given. */
export async function loadIn(events: EventCache, room: Room, eventIds: readonly EventId[]): Promise<RoomEvent[]> {
  const found = await events.loadByIds(eventIds)
  return eventIds.flatMap((id) => {
    const event = found.get(id)
    return event?.roomNid === room.nid ? [event] : []
  })
}

/**
 * Whether this server serves an event to other servers that ask for it. A server that names a soft-failed event builds on it, directly or
 * not. The event is then part of the room's graph, and its effect on the state must be the same for all. No server gets one unasked.
 * Rejected events are never served.
 */
export function mayBeServed(event: RoomEvent): boolean {
  return event.standing !== 'rejected'
}

export function prevIds(event: RoomEvent): EventId[] {
  return event.pdu.prev_events.map(referencedId)
}
