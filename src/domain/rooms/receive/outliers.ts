import type { ReadPdu } from '../../../core/event/read.ts'
import type { EventId, ServerName } from '../../../core/ids.ts'
import type { EventCache } from '../room/event-cache.ts'
import { authIdsOf, impliedIds } from '../room/event-references.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import {
  type Budget,
  createDownloadOutliers,
  type FindEvents,
  IDS_PER_LOOKUP,
  type OutlierDownloadParts,
} from './outlier-download.ts'
import { createStoreOutliers, type OutlierStoreParts, type StoreOutliers } from './outlier-store.ts'

/** Events that are stored because auth chains or claimed states refer to them, wherever they belong in the room. */
export interface Outliers {
  readonly find: FindEvents
  /**
   * Loads the events that authorise some events. Asks the server `of` for the missing ones and stores them. The result lacks what could not
   * be fetched.
   */
  cite(room: Room, of: ServerName, events: readonly ReadPdu[], budget: Budget): Promise<Map<EventId, RoomEvent>>
  /** Downloads those of the events that are missing and all their auth events, without storing them. */
  gather(room: Room, of: ServerName, eventIds: readonly EventId[], budget: Budget): Promise<readonly ReadPdu[]>
  readonly take: StoreOutliers
  /** Downloads those of the events that are missing and all their auth events, and stores them. False when it gave up. */
  fetch(room: Room, of: ServerName, eventIds: readonly EventId[], budget: Budget): Promise<boolean>
}

export interface OutlierParts extends OutlierDownloadParts, OutlierStoreParts {
  readonly events: EventCache
}

export function createOutliers(parts: OutlierParts): Outliers {
  const { events } = parts
  const download = createDownloadOutliers(parts, find)
  const take = createStoreOutliers(parts, find)

  async function find(room: Room, eventIds: readonly EventId[]): Promise<Map<EventId, RoomEvent>> {
    const found = new Map<EventId, RoomEvent>()
    const missing: EventId[] = []
    for (const id of eventIds) {
      const event = room.unsettled(id)
      if (event) found.set(id, event)
      else missing.push(id)
    }
    for (let at = 0; at < missing.length; at += IDS_PER_LOOKUP) {
      const loaded = await events.loadByIds(missing.slice(at, at + IDS_PER_LOOKUP))
      for (const event of loaded.values()) found.set(event.id, event)
    }
    return found
  }

  async function fetch(room: Room, of: ServerName, eventIds: readonly EventId[], budget: Budget): Promise<boolean> {
    const fetched = new Map<EventId, ReadPdu>()
    const isWhole = await download(room, of, eventIds, budget, fetched)
    if (fetched.size > 0) await take(room, [...fetched.values()])
    return isWhole
  }

  return {
    find,
    fetch,
    take,
    async gather(room, of, eventIds, budget) {
      const fetched = new Map<EventId, ReadPdu>()
      await download(room, of, eventIds, budget, fetched)
      return [...fetched.values()]
    },
    async cite(room, of, reads, budget) {
      const ids = [...new Set([...reads.flatMap(({ pdu }) => authIdsOf(pdu)), ...impliedIds(room)])]
      const known = await find(room, ids)
      if (known.size === ids.length) return known
      const among = new Set(reads.map(({ eventId }) => eventId))
      const missing = ids.filter((id) => !known.has(id) && !among.has(id))
      if (missing.length === 0) return known
      await fetch(room, of, missing, budget)
      return find(room, ids)
    },
  }
}
