import { integerOf } from '../../../core/large-integers.ts'
import type { EventRow } from '../../../store/events/events.ts'
import type { RoomNewsRow } from '../../../store/rooms/room-news.ts'
import { MAX_EVENTS_MOVED_ON } from '../../limits/cluster.ts'
import type { EventCache } from '../room/event-cache.ts'
import type { Extremity, Head } from '../room/head.ts'
import type { Room } from '../room/room.ts'
import { RoomEvent } from '../room/room-event.ts'
import { relationTargets } from '../write/relation-batch.ts'

/**
 * Brings a copy of a room up to date, if nothing but messages came to it. Each write of a room raises the version of its head by one for
 * each of its events, so if as many messages came as the version was raised by, nothing else was written.
 *
 * @param rows the room and its newer events, as they were at one moment
 * @returns false if the copy must be read anew
 */
export function moveOn(room: Room, events: EventCache, rows: readonly RoomNewsRow[]): boolean {
  const [now] = rows
  const from = room.committed
  if (now === undefined || now.chain_now !== from.chain || now.seq_now !== from.seq) return false
  if ((now.purged_to ?? Number.NEGATIVE_INFINITY) !== room.purgedTo) return false
  const count = now.head_version - from.version
  if (count === 0) return true
  if (count > MAX_EVENTS_MOVED_ON || rows.length !== count || !rows.every(isMessage)) return false
  const fresh = rows.map((row) => knownEvent(events, row) ?? new RoomEvent(row))
  const extremities = extremitiesOf(room, now.extremities, fresh)
  if (extremities === undefined || fresh.at(-1)?.pos !== now.last_pos) return false
  const head: Head = {
    version: now.head_version,
    extremities,
    merged: now.merged ?? extremities.length,
    depth: integerOf(BigInt(now.depth)),
    pos: now.last_pos,
    nid: now.last_nid,
    notifiable: now.notifiable_now,
    chain: from.chain,
    seq: from.seq,
    state: from.state,
    tip: from.tip,
    lastChain: from.lastChain,
  }
  for (const event of fresh) events.put(event)
  room.pending = head
  room.advance(fresh, [], head)
  events.related(relationTargets({ events: fresh, promoted: [] }))
  return true
}

/** Another reader may have read it later than this. */
function knownEvent(events: EventCache, { event_nid: nid, room_pos: pos }: EventRow): RoomEvent | undefined {
  const known = events.get(nid)
  return known?.pos === pos ? known : undefined
}

/** Redactions change other events, and what came late or was redacted early is no plain message. */
function isMessage(row: RoomNewsRow): row is RoomNewsRow & EventRow {
  if (row.event_nid === null || row.key_id !== null || row.standing !== null) return false
  return row.redacted_by === null && row.type !== 'm.room.redaction' && (row.stream_pos ?? 0) >= 0
}

function extremitiesOf(room: Room, nids: readonly number[], fresh: readonly RoomEvent[]): Extremity[] | undefined {
  const known = new Map(room.committed.extremities.map((one) => [one.nid, one]))
  for (const event of fresh)
    known.set(event.nid, {
      nid: event.nid,
      id: event.id,
      reference: event.reference(room.version),
      after: event.pointAfter,
    })
  const found = nids.flatMap((nid) => known.get(nid) ?? [])
  return found.length === nids.length ? found : undefined
}
