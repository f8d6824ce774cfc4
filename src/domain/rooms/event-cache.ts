import { LRUCache } from 'lru-cache'
import { createCache } from '../../core/cache.ts'
import type { Reader } from '../../store/db.ts'
import { type EventRow, getEvents, getEventsById } from '../../store/events.ts'
import { perTick } from '../../store/per-tick.ts'
import { RoomEvent } from './room-event.ts'

/** Events by number, bounded by bytes. All look-ups of one tick travel in one query. */
export interface EventCache {
  /** The events that exist among these numbers, by number. */
  load(nids: readonly number[]): Promise<Map<number, RoomEvent>>
  get(nid: number): RoomEvent | undefined
  getById(eventId: string): Promise<RoomEvent | undefined>
  /** The events that exist among these ids, by id. */
  loadByIds(eventIds: readonly string[]): Promise<Map<string, RoomEvent>>
  put(event: RoomEvent): void
  /** Keeps an event that was just read; one that is cached already wins, since it may be newer. */
  adopt(row: EventRow): RoomEvent
  /** Changes were missed: redactions among them would not show. */
  forgetAll(): void
}

/** Bytes an event costs beside its JSON. */
const OVERHEAD = 400

export function createEventCache({ db, maxBytes }: { db: Reader; maxBytes: number }): EventCache {
  const events = new LRUCache<number, RoomEvent>({
    maxSize: maxBytes,
    sizeCalculation: (event) => event.json.length + OVERHEAD,
  })
  const nidById = createCache<string, number>(50_000)

  function put(event: RoomEvent): void {
    events.set(event.nid, event)
    nidById.set(event.id, event.nid)
  }

  function adopt(row: EventRow): RoomEvent {
    const known = events.get(row.event_nid)
    if (known && isAsNew(known, row)) return known
    const event = new RoomEvent(row)
    put(event)
    return event
  }

  const fetch = perTick(async (nids: readonly number[]) => {
    const rows = await getEvents(db, nids)
    return new Map(rows.map((row) => [row.event_nid, adopt(row)]))
  })

  function knownById(eventId: string): RoomEvent | undefined {
    const nid = nidById.get(eventId)
    return nid === undefined ? undefined : events.get(nid)
  }

  async function loadByIds(eventIds: readonly string[]): Promise<Map<string, RoomEvent>> {
    const found = new Map<string, RoomEvent>()
    const missing: string[] = []
    for (const eventId of eventIds) {
      const event = knownById(eventId)
      if (event) found.set(eventId, event)
      else missing.push(eventId)
    }
    if (missing.length === 0) return found
    for (const row of await getEventsById(db, missing)) found.set(row.event_id, adopt(row))
    return found
  }

  return {
    put,
    adopt,
    get: (nid) => events.get(nid),
    forgetAll: () => events.clear(),
    async load(nids) {
      const found = new Map<number, RoomEvent>()
      const missing: number[] = []
      for (const nid of nids) {
        const event = events.get(nid)
        if (event) found.set(nid, event)
        else missing.push(nid)
      }
      if (missing.length === 0) return found
      const fetched = await fetch(missing)
      for (const nid of missing) {
        const event = fetched.get(nid)
        if (event) found.set(nid, event)
      }
      return found
    },
    loadByIds,
    async getById(eventId) {
      return knownById(eventId) ?? (await loadByIds([eventId])).get(eventId)
    },
  }
}

/** Redaction and taking its place in the room each happen once to an event. */
function isAsNew(known: RoomEvent, row: EventRow): boolean {
  const isRedactedToo = known.redactedBy !== undefined || row.redacted_by === null
  return isRedactedToo && (known.hasPlace || row.state_chain < 0)
}
