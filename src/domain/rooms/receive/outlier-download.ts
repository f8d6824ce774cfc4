import type { ReadPdu } from '../../../core/event/read.ts'
import type { EventId, ServerName } from '../../../core/ids.ts'
import { judgingIds } from '../room/event-references.ts'
import type { Room } from '../room/room.ts'
import type { RoomEvent } from '../room/room-event.ts'
import type { FederationQueries } from './federation-queries.ts'
import type { PduChecks } from './pdu-checks.ts'

/** How many events may still be requested for one batch of another server. */
export interface Budget {
  left: number
  /** The budget also ends at this time, by the clock of `performance.now()`. */
  readonly until?: number
}

export function isOver({ left, until = Number.POSITIVE_INFINITY }: Budget): boolean {
  return left <= 0 || performance.now() > until
}

/** Finds events by id, including those not committed yet and those of other rooms. */
export type FindEvents = (room: Room, eventIds: readonly EventId[]) => Promise<Map<EventId, RoomEvent>>

/**
 * Downloads the missing ones of some events and of their auth events, into `fetched`. Gives up and returns false when an answer contains
 * nothing that was asked for, or when the budget is spent. So a server that names many events and has none costs one look-up and one
 * request.
 */
export type DownloadOutliers = (
  room: Room,
  of: ServerName,
  eventIds: readonly EventId[],
  budget: Budget,
  fetched: Map<EventId, ReadPdu>,
) => Promise<boolean>

export interface OutlierDownloadParts {
  readonly queries: FederationQueries
  readonly pduChecks: PduChecks
}

const EVENTS_PER_REQUEST = 100
/** Ids per look-up query, so that other readers get their turn. */
export const IDS_PER_LOOKUP = 1_000

export function createDownloadOutliers(
  { queries, pduChecks }: OutlierDownloadParts,
  find: FindEvents,
): DownloadOutliers {
  async function request(room: Room, of: ServerName, eventIds: readonly EventId[], budget: Budget): Promise<ReadPdu[]> {
    if (eventIds.length > budget.left || isOver(budget)) return []
    budget.left -= eventIds.length
    const answer = await queries.events(of, room.id, eventIds)
    return pduChecks.checkAll(room, answer.slice(0, eventIds.length))
  }

  return async (room, of, eventIds, budget, fetched) => {
    const requested = new Set<EventId>()
    for (let front = eventIds; front.length > 0; ) {
      const cited = new Set<EventId>()
      const open: EventId[] = []
      for (let at = 0; at < front.length; at += IDS_PER_LOOKUP) {
        const part = front.slice(at, at + IDS_PER_LOOKUP)
        const known = await find(room, part)
        for (const id of part) if (!known.has(id)) open.push(id)
        const isLast = at + IDS_PER_LOOKUP >= front.length
        while (open.length >= EVENTS_PER_REQUEST || (isLast && open.length > 0)) {
          const wanted = open.splice(0, EVENTS_PER_REQUEST)
          for (const id of wanted) requested.add(id)
          const given = (await request(room, of, wanted, budget)).filter(({ eventId }) => requested.has(eventId))
          if (given.length === 0) return false
          for (const read of given) {
            fetched.set(read.eventId, read)
            for (const id of judgingIds(room, read)) cited.add(id)
          }
        }
      }
      front = [...cited].filter((id) => !requested.has(id))
    }
    return true
  }
}
