import { referencedId } from '../../../core/event/format.ts'
import type { EventId } from '../../../core/ids.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'

/** Those of some events that a room has, in the order given. */
export async function loadIn(events: EventCache, room: Room, eventIds: readonly EventId[]): Promise<RoomEvent[]> {
  const found = await events.loadByIds(eventIds)
  return eventIds.flatMap((id) => {
    const event = found.get(id)
    return event?.roomNid === room.nid ? [event] : []
  })
}

/**
 * Whether other servers are sent an event that they ask for. Who names a soft-failed event builds on it, or on what does: it is part of
 * the room's graph then, and what it did to the state has to be the same for all. Nobody is sent one unasked. Rejected events are served
 * to nobody.
 */
export function mayBeServed(event: RoomEvent): boolean {
  return event.standing !== 'rejected'
}

export function prevIds(event: RoomEvent): EventId[] {
  return event.pdu.prev_events.map(referencedId)
}
