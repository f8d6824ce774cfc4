import { ProtocolError } from '../../../core/errors.ts'
import type { RoomId } from '../../../core/ids.ts'
import type { Database } from '../../../store/db/db.ts'
import { getEventIds } from '../../../store/events/events.ts'
import { type GraphRow, readGraph } from '../../../store/rooms/room-pages.ts'
import { getGaps } from '../../../store/rooms/room-report.ts'
import { MAX_GRAPH_EVENTS } from '../../limits/console-pages.ts'
import type { RoomRegistry } from '../../rooms/room/registry.ts'

/** An event as a point of the picture of a room. */
export interface GraphEvent {
  readonly event_id: string
  readonly type: string
  readonly state_key: string | null
  readonly sender: string
  readonly origin_server_ts: number
  readonly depth: number
  readonly prev_events: readonly string[]
  /** `rejected` or `soft-failed`; null for an event that is part of the room. */
  readonly standing: string | null
  /** Why it was refused, with the clause of the rules. */
  readonly reason: string | null
  readonly bytes: number
}

export interface GraphView {
  /** The newest first. */
  readonly events: readonly GraphEvent[]
  /** The events that no event refers to yet. */
  readonly extremities: readonly string[]
  /** Events that others refer to and that this server does not have. */
  readonly missing: readonly string[]
  /** Give it as `before` for the events before these. */
  readonly next_before?: number
}

/** Pictures of the graphs of rooms: how their events refer to each other, and which were refused. */
export interface RoomGraph {
  /** @throws ProtocolError `M_NOT_FOUND` */
  read(roomId: RoomId, before: number | undefined): Promise<GraphView>
}

export function createRoomGraph({
  db,
  registry,
}: {
  readonly db: Database
  readonly registry: Pick<RoomRegistry, 'get'>
}): RoomGraph {
  return {
    async read(roomId, before) {
      const room = await registry.get(roomId)
      if (!room) throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
      const { extremities } = room.committed
      const [rows, gaps, ids] = await Promise.all([
        readGraph({ query: db.scan }, room.nid, before ?? Number.MAX_SAFE_INTEGER, MAX_GRAPH_EVENTS),
        getGaps(db, room.nid),
        getEventIds(
          db,
          extremities.map(({ nid }) => nid),
        ),
      ])
      const placed = rows.filter(({ room_pos }) => room_pos !== null)
      const depths = placed.map(depthOf)
      const [lowest, highest] = [
        Math.min(...depths),
        before === undefined ? Number.POSITIVE_INFINITY : Math.max(...depths),
      ]
      const refused = rows.filter((row) => row.room_pos === null && depthOf(row) >= lowest && depthOf(row) <= highest)
      const shown = [...placed, ...refused]
      shown.sort((left, right) => depthOf(right) - depthOf(left) || right.event_nid - left.event_nid)
      const events = shown.map(viewOf)
      const named = new Set(events.flatMap(({ prev_events }) => prev_events))
      return {
        events,
        extremities: [...ids.values()],
        missing: gaps.filter((id) => named.has(id)),
        ...(placed.length === MAX_GRAPH_EVENTS && {
          next_before: Math.min(...placed.map(({ room_pos }) => room_pos!)),
        }),
      }
    },
  }
}

function depthOf({ depth }: GraphRow): number {
  return Number(depth ?? 0)
}

function viewOf(row: GraphRow): GraphEvent {
  const { event_id, type, state_key, sender, origin_server_ts, standing, reason, json_bytes: bytes } = row
  const previous = JSON.parse(row.prev_events ?? '[]') as readonly (string | readonly [string, unknown])[]
  // Room versions 1 and 2 add a hash to each id.
  const prev_events = previous.map((one) => (typeof one === 'string' ? one : one[0]))
  return {
    event_id,
    type,
    state_key,
    sender,
    origin_server_ts,
    depth: depthOf(row),
    prev_events,
    standing,
    reason,
    bytes,
  }
}
