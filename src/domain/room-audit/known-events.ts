import { ByteBudget } from '../../core/byte-budget.ts'
import type { EventId } from '../../core/ids.ts'
import type { Reader } from '../../store/db/db.ts'
import { createEventCache } from '../rooms/room/event-cache.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'

/** A cache of events that others refer to, of a limited number of bytes. */
export interface KnownEvents {
  byNid(nids: readonly number[]): Promise<Map<number, RoomEvent>>
  byId(eventIds: readonly EventId[]): Promise<Map<EventId, RoomEvent>>
}

const BYTES_KEPT = 128 * 1024 * 1024

export function createKnownEvents(db: Reader): KnownEvents {
  const events = createEventCache({ db, budget: new ByteBudget(BYTES_KEPT) })
  return {
    byNid: (nids) => events.load(nids),
    byId: async (eventIds) => (await events.loadByIds([...new Set(eventIds)])) as Map<EventId, RoomEvent>,
  }
}
