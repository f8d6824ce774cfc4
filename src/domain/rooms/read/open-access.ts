import { ProtocolError } from '../../../core/errors.ts'
import type { Membership } from '../../../core/event/content.ts'
import type { RoomId } from '../../../core/ids.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { RoomRegistry } from '../room/registry.ts'
import type { Room } from '../room/room.ts'
import type { Readable, RoomAccess, Seen } from '../room/room-access.ts'

/**
 * Access without limits, for operators: every room that this server knows, and every event of its timeline. Nothing else may be built on it.
 * Functions throw `M_NOT_FOUND` for what this server does not know.
 */
export function createOpenAccess({
  registry,
  events,
}: {
  readonly registry: Pick<RoomRegistry, 'get'>
  readonly events: Pick<EventCache, 'getById'>
}): RoomAccess {
  async function mustKnow(roomId: RoomId): Promise<Room> {
    const room = await registry.get(roomId)
    if (room) return room
    throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
  }

  async function readable(roomId: RoomId): Promise<Readable> {
    const room = await mustKnow(roomId)
    return { room, departure: undefined, upTo: room.committed.pos, seesState: true }
  }

  const find: RoomAccess['find'] = async (_viewer, roomId, eventId): Promise<Seen | undefined> => {
    const whole = await readable(roomId)
    const event = await events.getById(eventId)
    return event?.roomNid === whole.room.nid && event.isInTimeline ? { ...whole, event } : undefined
  }

  return {
    visibleTo: async (_viewer, _room, candidates) => candidates,
    seesAtOnce: () => false,
    membersSee: () => false,
    membershipsAt: () => (): Membership => 'leave',
    mayShowUpTo: async (_viewer, _room, pos) => pos,
    mustReadTimeline: (_viewer, roomId) => readable(roomId),
    mustReadState: (_viewer, roomId) => readable(roomId),
    find,
    async mustSee(viewer, roomId, eventId) {
      const seen = await find(viewer, roomId, eventId)
      if (seen) return seen
      throw new ProtocolError('M_NOT_FOUND', 'This room has no such event in its timeline.')
    },
    mustPeek: (_viewer, roomId) => mustKnow(roomId),
    mustBeInRoom: (_viewer, roomId) => mustKnow(roomId),
    anyMustBeInRoom: (_viewer, _isOneOf, roomId) => mustKnow(roomId),
  }
}
