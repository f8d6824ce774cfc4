import type { ReadPdu } from '../../../core/event/read.ts'
import type { EventId } from '../../../core/ids.ts'
import { clampToSafe } from '../../../core/large-integers.ts'
import type { Users } from '../../users.ts'
import { authIdsOf, authoriseByCited, judgingIds, reasonOf } from '../room/event-references.ts'
import type { Room } from '../room/room.ts'
import { outlierRow, RoomEvent } from '../room/room-event.ts'
import { topological } from '../room/topological.ts'
import type { Persister } from '../write/persister.ts'
import { keyWrites, NO_GRAPH } from '../write/unit.ts'
import type { FindEvents } from './outlier-download.ts'

/**
 * Authorises events by their auth events and stores them. Returns the events whose auth events are neither known nor among them.
 *
 * @param seen called with each event that is stored, or was stored before
 */
export type StoreOutliers = (
  room: Room,
  events: readonly ReadPdu[],
  seen?: (event: RoomEvent) => void,
) => Promise<ReadPdu[]>

export interface OutlierStoreParts {
  readonly users: Users
  readonly persister: Persister
}

const EVENTS_PER_COMMIT = 256

export function createStoreOutliers({ users, persister }: OutlierStoreParts, find: FindEvents): StoreOutliers {
  /** There must be no await between numbering events and queueing them. */
  function store(
    room: Room,
    reads: readonly ReadPdu[],
    known: Map<EventId, RoomEvent>,
    needs: ReadonlyMap<ReadPdu, readonly EventId[]>,
    nidOf: (sender: ReadPdu['pdu']['sender']) => number,
  ): Promise<void> | undefined {
    const made: RoomEvent[] = []
    for (const read of reads) {
      if (known.has(read.eventId) || !needs.get(read)!.every((id) => known.has(id))) continue
      const event = judged(room, read, known, nidOf(read.pdu.sender))
      known.set(event.id, event)
      made.push(event)
    }
    if (made.length === 0 || !room.alive) return undefined
    const before = room.pending
    const after = { ...before, version: before.version + 1 }
    const nothing = { changes: [], members: [], unread: [], redactions: [], txn: undefined }
    const unit = { ...NO_GRAPH, ...nothing, room, before, after, events: made, keys: keyWrites(room) }
    room.enqueued(unit)
    room.outliersTaken += made.length
    // The outliers that build on these are queued behind them, and fail with them.
    return persister.enqueue(unit).then(
      () => undefined,
      () => undefined,
    )
  }

  function judged(
    room: Room,
    { pdu, eventId, json }: ReadPdu,
    known: ReadonlyMap<EventId, RoomEvent>,
    senderNid: number,
  ): RoomEvent {
    const verdict = authoriseByCited(room, pdu, known)
    const keyId = verdict.allowed && pdu.state_key !== undefined ? room.keys.intern(pdu.type, pdu.state_key) : undefined
    const row = outlierRow({
      event_nid: persister.takeNid(),
      room_nid: room.nid,
      sender_nid: senderNid,
      origin_server_ts: clampToSafe(pdu.origin_server_ts),
      key_id: keyId ?? null,
      event_id: eventId,
      type: pdu.type,
      standing: verdict.allowed ? 'outlier' : 'rejected',
      reason: verdict.allowed ? null : `by its auth events: ${reasonOf(verdict)}`,
      auth_nids: keyId === undefined ? null : authIdsOf(pdu).map((id) => known.get(id)!.nid),
      json,
    })
    return new RoomEvent(row, pdu)
  }

  return async (room, reads, seen = () => {}) => {
    const needs = new Map(reads.map((read) => [read, judgingIds(room, read)]))
    const { order } = topological(
      new Map(reads.map((read) => [read.eventId as string, read])),
      (read) => needs.get(read)!,
    )
    const nids = await users.intern([...new Set(order.map(({ pdu }) => pdu.sender))])
    const left: ReadPdu[] = []
    let stored: Promise<void> | undefined
    for (let at = 0; at < order.length && room.alive; at += EVENTS_PER_COMMIT) {
      const part = order.slice(at, at + EVENTS_PER_COMMIT)
      const ids = new Set(part.flatMap((read) => [read.eventId, ...needs.get(read)!]))
      const known = await find(room, [...ids])
      // For a large state, the queue holds only one commit besides the one that is being written.
      await stored
      stored = store(room, part, known, needs, (sender) => nids.get(sender)!)
      for (const read of part) {
        const event = known.get(read.eventId)
        if (event) seen(event)
        else left.push(read)
      }
    }
    return left
  }
}
