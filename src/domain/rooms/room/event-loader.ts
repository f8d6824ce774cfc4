import type { BudgetPart } from '../../../core/byte-budget.ts'
import type { Reader } from '../../../store/db/db.ts'
import { perTick } from '../../../store/db/per-tick.ts'
import { type EventRow, getEventsWithin } from '../../../store/events/events.ts'
import { RoomEvent } from './room-event.ts'

/** Loads events by number, from memory or the database. All look-ups of one tick share one query. */
export interface EventLoader {
  /** The events that exist among these numbers, by number. */
  load(nids: readonly number[]): Promise<Map<number, RoomEvent>>
  /**
   * Like `load`, until the events reach about this many bytes. Gives only the numbers of the rest, for `loadLarge`. Synchronous where all of
   * them are in memory.
   */
  loadWithin(nids: readonly number[], maxBytes: number): LoadedPart | Promise<LoadedPart>
  /** Loads a part of what is too large to hold at once. The part does not go into the cache, where it would displace what others read. */
  loadLarge(nids: readonly number[], maxBytes: number): Promise<LoadedPart>
}

export interface LoadedPart {
  readonly found: readonly RoomEvent[]
  /** Numbers that are not loaded yet; some events may not exist. */
  readonly left: readonly number[]
}

/** What loading reads from, and where it keeps events. */
export interface EventLoaderParts {
  readonly db: Reader
  /** For long reads. */
  readonly bulk: Reader
  /** The events in memory, by number. */
  readonly events: BudgetPart<number, RoomEvent>
  /** Keeps an event that was just read. An event that is already cached wins, since it may be newer. */
  adopt(row: EventRow): RoomEvent
}

/** Larger reads go in pieces over the bulk connection, so that other readers need not wait. */
const MAX_SMALL_READ_BYTES = 2 * 1024 * 1024
const LARGE_READ_BYTES = 512 * 1024
const LARGE_READ_EVENTS = 2_000

export function createEventLoader({ db, bulk, events, adopt }: EventLoaderParts): EventLoader {
  /** An event that is too large for a small read is missing here. */
  const fetch = perTick(async (nids: readonly number[]) => {
    const { rows, left } = await getEventsWithin(db, nids, MAX_SMALL_READ_BYTES)
    const fetched = new Map<number, RoomEvent | undefined>(rows.map((row) => [row.event_nid, adopt(row)]))
    for (const nid of left) fetched.set(nid, undefined)
    return fetched
  })

  async function* fetchLarge(nids: readonly number[]): AsyncGenerator<readonly EventRow[]> {
    for (let wanted = nids; wanted.length > 0; ) {
      const { rows, left } = await getEventsWithin(bulk, wanted.slice(0, LARGE_READ_EVENTS), LARGE_READ_BYTES)
      yield rows
      wanted = [...left, ...wanted.slice(LARGE_READ_EVENTS)]
    }
  }

  /** Fetches events until they reach so many bytes, and adds them to those that were found. */
  async function fetchWithin(
    found: readonly RoomEvent[],
    missing: readonly number[],
    maxBytes: number,
  ): Promise<LoadedPart> {
    const fetched = await fetch(missing)
    const all = [...found]
    const left: number[] = []
    let bytes = 0
    for (const nid of missing) {
      const event = fetched.get(nid)
      if (event && bytes < maxBytes) {
        all.push(event)
        bytes += event.json.length
      } else if (fetched.has(nid)) left.push(nid)
    }
    return { found: all, left }
  }

  return {
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
      const left: number[] = []
      for (const nid of missing) {
        const event = fetched.get(nid)
        if (event) found.set(nid, event)
        else if (fetched.has(nid)) left.push(nid)
      }
      for await (const rows of fetchLarge(left)) for (const row of rows) found.set(row.event_nid, adopt(row))
      return found
    },
    loadWithin(nids, maxBytes) {
      const found: RoomEvent[] = []
      const missing: number[] = []
      let bytes = 0
      for (const nid of nids) {
        const event = bytes < maxBytes ? events.get(nid) : undefined
        if (event) {
          found.push(event)
          bytes += event.json.length
        } else missing.push(nid)
      }
      if (missing.length === 0 || bytes >= maxBytes) return { found, left: missing }
      return fetchWithin(found, missing, maxBytes - bytes)
    },
    async loadLarge(nids, maxBytes) {
      const found: RoomEvent[] = []
      const missing: number[] = []
      let bytes = 0
      let at = 0
      for (; at < nids.length && bytes < maxBytes && missing.length < LARGE_READ_EVENTS; at++) {
        const event = events.get(nids[at]!)
        if (event) {
          found.push(event)
          bytes += event.json.length
        } else missing.push(nids[at]!)
      }
      const { rows, left } =
        missing.length > 0 ? await getEventsWithin(bulk, missing, maxBytes) : { rows: [], left: [] }
      for (const row of rows) found.push(events.peek(row.event_nid) ?? new RoomEvent(row))
      return { found, left: [...left, ...nids.slice(at)] }
    },
  }
}
