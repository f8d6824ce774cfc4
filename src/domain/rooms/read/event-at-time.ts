import { ProtocolError } from '../../../core/errors.ts'
import { type EventId, isEventId, type RoomId, type ServerName } from '../../../core/ids.ts'
import type { JsonObject } from '../../../core/json.ts'
import type { Peers } from '../../../outbound/peers.ts'
import type { Database } from '../../../store/db/db.ts'
import { getTimelineBackwards, getTimelineForwards, nearestEvents } from '../../../store/events/events.ts'
import type { Requester } from '../../accounts/requester.ts'
import { MAX_HISTORY_WAIT_MS } from '../../limits.ts'
import type { Backfill } from '../backfill/backfill.ts'
import type { Gap } from '../backfill/history-piece.ts'
import { serversWithHistory } from '../backfill/history-servers.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Room } from '../room/room.ts'
import type { RoomAccess } from '../room/room-access.ts'
import type { RoomEvent } from '../room/room-event.ts'
import { BEGINNING, type Direction, type Timeline } from './timeline.ts'

/**
 * The event nearest to a time: the first at or after it (`f`), or the last at or before it (`b`). Where history is missing next to it,
 * other servers are asked for a nearer one (client-server API, `GET timestamp_to_event`).
 *
 * @param ts milliseconds
 * @throws ProtocolError `M_FORBIDDEN` for users who may not read the room, `M_NOT_FOUND`
 */
export type EventAtTime = (
  by: Requester,
  roomId: RoomId,
  ts: number,
  direction: Direction,
) => Promise<{ event_id: EventId; origin_server_ts: number }>

export interface EventAtTimeParts {
  readonly db: Database
  readonly events: EventCache
  readonly access: RoomAccess
  readonly timeline: Timeline
  readonly backfill: Backfill
  readonly serverName: ServerName
  readonly peers: Pick<Peers, 'query'>
}

interface Wanted {
  readonly ts: number
  readonly direction: Direction
}

export function createEventAtTime(parts: EventAtTimeParts): EventAtTime {
  const { db, events, access, timeline, backfill, peers } = parts

  async function known(by: Requester, room: Room, upTo: number, wanted: Wanted): Promise<RoomEvent | undefined> {
    const { ts, direction } = wanted
    // This query may have to read much of the room.
    const [nearest] = await nearestEvents({ query: db.scan }, room.nid, ts, direction, 1)
    const from = nearest?.room_pos ?? Number.POSITIVE_INFINITY
    const stretch = direction === 'f' ? { after: from - 1, upTo } : { after: BEGINNING, upTo: Math.min(from, upTo) }
    if (!nearest || stretch.after >= stretch.upTo) return undefined
    const fits = (event: RoomEvent) => (direction === 'f' ? event.ts >= ts : event.ts <= ts)
    return (await timeline.page(by, { room, direction, ...stretch }, 1, fits)).events[0]
  }

  /** The gap in which a nearer event may be missing: between the event that was found and the next one towards the time. */
  async function gapNextTo(room: Room, found: RoomEvent | undefined, direction: Direction): Promise<Gap | undefined> {
    if (direction === 'f') {
      if (!found) return undefined
      const [before] = await getTimelineBackwards(db, room.nid, BEGINNING, found.pos - 1, 1)
      return openBetween(room, before?.room_pos ?? BEGINNING, found.pos)
    }
    const below = found?.pos ?? BEGINNING
    const [after] = await getTimelineForwards(db, room.nid, below, Number.MAX_SAFE_INTEGER, 1)
    return after && openBetween(room, below, after.room_pos!)
  }

  const openBetween = async (room: Room, below: number, from: number) =>
    from - below > 1 ? backfill.open(room, { from, below }) : undefined

  async function askFor(room: Room, gap: Gap, found: RoomEvent | undefined, wanted: Wanted, until: AbortSignal) {
    for (const server of await serversWithHistory(db, room, gap.holder, parts.serverName)) {
      if (until.aborted) return undefined
      const answered = await ask(server, room, wanted)
      if (!answered || !isNearer(answered.ts, found, wanted)) continue
      if (!(await backfill.bring(room, gap, server, answered.eventId))) continue
      const event = await events.getById(answered.eventId)
      if (event?.roomNid === room.nid && isNearer(event.ts, found, wanted)) return event
    }
    return undefined
  }

  async function ask(of: ServerName, room: Room, { ts, direction }: Wanted) {
    const path = `timestamp_to_event/${encodeURIComponent(room.id)}?ts=${ts}&dir=${direction}`
    const answer = await peers.query(of, path).catch((error: unknown): JsonObject => {
      if (error instanceof ProtocolError) return {}
      throw error
    })
    const { event_id: eventId, origin_server_ts: at } = answer
    return isEventId(eventId) && typeof at === 'number' ? { eventId, ts: at } : undefined
  }

  return async (by, roomId, ts, direction) => {
    const { room, upTo } = await access.mustReadTimeline(by, roomId)
    const wanted = { ts, direction }
    const found = await known(by, room, upTo, wanted)
    const isAsked = room.localMembers.has(by.userNid) && found?.ts !== ts
    const gap = isAsked ? await gapNextTo(room, found, direction) : undefined
    const until = AbortSignal.timeout(MAX_HISTORY_WAIT_MS)
    const nearer = gap && (await within(until, askFor(room, gap, found, wanted, until)))
    const [visible] = nearer ? await access.visibleTo(by, room, [nearer]) : []
    const event = visible ?? found
    if (!event) throw new ProtocolError('M_NOT_FOUND', 'There is no event for you to see in that direction.')
    return { event_id: event.id, origin_server_ts: event.ts }
  }
}

function isNearer(at: number, found: RoomEvent | undefined, { ts, direction }: Wanted): boolean {
  return direction === 'f' ? at >= ts && at < (found?.ts ?? Infinity) : at <= ts && at > (found?.ts ?? -Infinity)
}

/** The answer, or undefined when it takes too long. A later request finds what has come since. */
function within<T>(until: AbortSignal, answer: Promise<T>): Promise<T | undefined> {
  return Promise.race([
    answer,
    new Promise<undefined>((resolve) => until.addEventListener('abort', () => resolve(undefined), { once: true })),
  ])
}
