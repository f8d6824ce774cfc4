import { ByteBudget } from '../../../core/byte-budget.ts'
import { MAX_IDLE_IN_MEMORY_MS, ROOM_MEMORY_BYTES } from '../../limits.ts'

/** How often the budget looks for entries that were not used. */
const LOOKED_FOR_EVERY_MS = 60_000

/** The one memory budget for all caches of rooms and their events. Entries that are unused for long go, even if there is room. */
export interface RoomMemory {
  readonly budget: ByteBudget
  /** Bytes in memory, of these parts and of all others. */
  use(parts: { readonly events: Held; readonly rooms: Held }): RoomMemoryUse
  close(): void
}

interface Held {
  readonly bytes: number
}

export interface RoomMemoryUse {
  readonly events: number
  readonly rooms: number
  readonly others: number
}

export function openRoomMemory(maxBytes = ROOM_MEMORY_BYTES): RoomMemory {
  const budget = new ByteBudget(maxBytes)
  const ages = MAX_IDLE_IN_MEMORY_MS / LOOKED_FOR_EVERY_MS
  const timer = setInterval(() => budget.grow(ages), LOOKED_FOR_EVERY_MS).unref()
  return {
    budget,
    use({ events, rooms }) {
      const others = budget.bytes - events.bytes - rooms.bytes
      return { events: events.bytes, rooms: rooms.bytes, others }
    },
    close: () => clearInterval(timer),
  }
}
