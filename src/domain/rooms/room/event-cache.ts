import type { ByteBudget } from '../../../core/byte-budget.ts'
import type { Database, Reader } from '../../../store/db/db.ts'
import { type EventRow, getEventsById } from '../../../store/events/events.ts'
import { createEventLoader, type EventLoader } from './event-loader.ts'
import { RoomEvent } from './room-event.ts'

/** Events by number and by id, within the memory budget of rooms. */
export interface EventCache extends EventLoader {
  get(nid: number): RoomEvent | undefined
  getById(eventId: string): Promise<RoomEvent | undefined>
  /** The events that exist among these ids, by id. */
  loadByIds(eventIds: readonly string[]): Promise<Map<string, RoomEvent>>
  put(event: RoomEvent): void
  /** Other events relate to the events with these ids, which need not be known. */
  related(eventIds: readonly string[]): void
  /** An event was rendered and takes more memory from now on. */
  grown(event: RoomEvent): void
  /** Keeps an event that was just read, unless it was forgotten lately. An event that is already cached wins, since it may be newer. */
  adopt(row: EventRow): RoomEvent
  /** Whether nothing is known of an event that its row, which was just read, does not say. */
  saysNoMore(row: Pick<EventRow, 'event_nid' | 'event_id' | 'redacted_by' | 'has_relations'>): boolean
  /** Forgets events that were removed or changed. Reads that began before do not bring them back. */
  forget(nids: readonly number[]): void
  /** Forgets all events, because commits were missed: some of them may be redactions. */
  forgetAll(): void
  /** Bytes in memory. */
  readonly bytes: number
}

/** For longer than the time in which so many events get relations, no read is under way. Of one room fewer are enough. */
const MAX_RECENT_TARGETS = 4_096

/** The same for events that were removed or changed: a purge removes less while a read is under way. */
const MAX_RECENT_FORGOTTEN = 32_768

/** A set of at least the `size` newest ids, and of at most twice as many. */
function createRecentIds<Id>(size: number): Pick<Set<Id>, 'has'> & { add(id: Id): void } {
  let newer = new Set<Id>()
  let older = new Set<Id>()
  return {
    has: (id) => newer.has(id) || older.has(id),
    add(id) {
      newer.add(id)
      if (newer.size < size) return
      older = newer
      newer = new Set()
    },
  }
}

/** A number that no event has. */
const NO_EVENT = -1

export function createEventCache({
  db,
  budget,
  recentTargets = MAX_RECENT_TARGETS,
  recentForgotten = MAX_RECENT_FORGOTTEN,
}: {
  db: Reader & Partial<Pick<Database, 'bulk'>>
  budget: ByteBudget
  recentTargets?: number
  recentForgotten?: number
}): EventCache {
  const nidById = new Map<string, number>()
  const targets = createRecentIds<string>(recentTargets)
  const forgotten = createRecentIds<number>(recentForgotten)
  const events = budget.part<number, RoomEvent>({
    name: 'events',
    bytesOf: (event) => event.bytes,
    indexes: 1,
    gone: ({ id }) => nidById.delete(id),
  })

  function put(event: RoomEvent): void {
    if (targets.has(event.id)) event.markRelated()
    nidById.set(event.id, event.nid)
    events.set(event.nid, event)
  }

  /** What was read before a relation was written may be put into the cache after it. */
  function related(eventIds: readonly string[]): void {
    for (const eventId of eventIds) {
      targets.add(eventId)
      events.peek(nidById.get(eventId) ?? NO_EVENT)?.markRelated()
    }
  }

  function adopt(row: EventRow): RoomEvent {
    // A look for what was read anyway must not count as one.
    const known = events.peek(row.event_nid)
    if (known && isAsNew(known, row)) return events.get(row.event_nid) ?? known
    const event = new RoomEvent(row)
    // Who read it before it was removed or changed may still answer with it.
    if (!forgotten.has(event.nid)) put(event)
    return event
  }

  const loader = createEventLoader({ db, bulk: db.bulk ?? db, events, adopt })

  function knownById(eventId: string): RoomEvent | undefined {
    return events.get(nidById.get(eventId) ?? NO_EVENT)
  }

  async function loadByIds(eventIds: readonly string[]): Promise<Map<string, RoomEvent>> {
    const found = new Map<string, RoomEvent>()
    const missing: string[] = []
    for (const eventId of eventIds) {
      const event = knownById(eventId)
      if (event) found.set(eventId, event)
      // Contents name events of any name. None has this one, for which Postgres has no text.
      else if (!eventId.includes('\0')) missing.push(eventId)
    }
    if (missing.length === 0) return found
    for (const row of await getEventsById(db, missing)) found.set(row.event_id, adopt(row))
    return found
  }

  return {
    put,
    related,
    adopt,
    get: (nid) => events.get(nid),
    saysNoMore({ event_nid, event_id, redacted_by, has_relations }) {
      const known = events.peek(event_nid)
      if (known) return known.redactedBy === (redacted_by ?? undefined) && known.hasRelations === has_relations
      return !forgotten.has(event_nid) && !targets.has(event_id)
    },
    grown: (event) => events.grown(event.nid, event),
    get bytes() {
      return events.bytes
    },
    forget(nids) {
      for (const nid of nids) {
        forgotten.add(nid)
        events.delete(nid)
      }
    },
    forgetAll() {
      events.clear()
      nidById.clear()
    },
    ...loader,
    loadByIds,
    async getById(eventId) {
      return knownById(eventId) ?? (await loadByIds([eventId])).get(eventId)
    },
  }
}

/** An event is redacted at most once and gets its place at most once, so a copy that lacks either is the older one. */
function isAsNew(known: RoomEvent, row: EventRow): boolean {
  const isRedactedToo = known.redactedBy !== undefined || row.redacted_by === null
  return isRedactedToo && (known.hasPlace || row.state_chain < 0)
}
