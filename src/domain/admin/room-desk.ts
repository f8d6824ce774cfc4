import { ProtocolError } from '../../core/errors.ts'
import type { EventId, RoomId, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { forEachState } from '../../core/state/trie.ts'
import type { Database } from '../../store/db/db.ts'
import { surveys, wholeTables } from '../../store/db/whole-tables.ts'
import {
  describeAllRooms,
  describeRooms,
  type ListedRoom,
  listAllRooms,
  listJoined,
  surveyRoom,
  surveyRooms,
} from '../../store/rooms/room-survey.ts'
import type { Clock } from '../clock.ts'
import { writeEventList } from '../rooms/read/event-lists.ts'
import { loadReferences, writeClientEvent } from '../rooms/room/client-event.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import {
  inOrder,
  isFound,
  neededFor,
  type RoomOrder,
  type RoomView,
  roomDetails,
  roomView,
  SEARCHED_TYPES,
  stateOf,
  VIEWED_TYPES,
} from './room-view.ts'

export interface RoomsQuery {
  readonly from?: number | undefined
  readonly limit?: number | undefined
  readonly order_by?: RoomOrder | undefined
  readonly dir?: 'f' | 'b' | undefined
  readonly search_term?: string | undefined
  readonly public_rooms?: boolean | undefined
  readonly empty_rooms?: boolean | undefined
}

/** The rooms that this server knows, for operators. */
export interface RoomDesk {
  list(query: RoomsQuery): Promise<JsonObject>
  isKnown(roomId: RoomId): Promise<boolean>
  /** @throws ProtocolError `M_NOT_FOUND` */
  get(roomId: RoomId): Promise<JsonObject>
  /** @throws ProtocolError `M_NOT_FOUND` */
  members(roomId: RoomId): Promise<UserId[]>
  /** All state, or that of one type; JSON. @throws ProtocolError `M_NOT_FOUND` */
  state(roomId: RoomId, type: string | undefined): Promise<JsonBytes>
  /** An event of any room; JSON. @throws ProtocolError `M_NOT_FOUND` */
  event(eventId: EventId): Promise<JsonBytes>
}

export interface RoomDeskParts {
  readonly db: Database
  readonly clock: Clock
  readonly registry: RoomRegistry
  readonly events: EventCache
}

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000
const DETAILED_TYPES = [...VIEWED_TYPES, 'm.room.tombstone'] as const

export function createRoomDesk(parts: RoomDeskParts): RoomDesk {
  const { db, clock, registry, events } = parts
  const patient = surveys(db)

  /** What a page shows of its rooms, in their order. */
  async function viewsOf(page: readonly ListedRoom[]): Promise<RoomView[]> {
    const [rows, states] = await Promise.all([
      surveyRooms(
        patient,
        page.map(({ room_nid }) => room_nid),
      ),
      describeRooms(patient, page, VIEWED_TYPES),
    ])
    const found = new Map(rows.map((row) => [row.room_nid, row]))
    return page.flatMap(({ room_nid }) => {
      const row = found.get(room_nid)
      return row ? [roomView(row, stateOf(states.get(room_nid)))] : []
    })
  }

  async function mustKnow(roomId: RoomId): Promise<Room> {
    const room = await registry.get(roomId)
    if (room) return room
    throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
  }

  return {
    // Of all rooms only that is read by which they are found and put in order, and from the database: it would push out rooms in use.
    async list({ from = 0, limit = DEFAULT_LIMIT, order_by = 'name', dir = 'f', search_term: term, ...wanted }) {
      const reader = wholeTables(db)
      const { figure, type } = neededFor(order_by)
      const filter = { figure, isPublic: wanted.public_rooms, isEmpty: wanted.empty_rooms }
      const rows = await listAllRooms(reader, filter)
      const types = new Set<string>([...(type ? [type] : []), ...(term === undefined ? [] : SEARCHED_TYPES)])
      const texts = types.size === 0 ? new Map() : await describeAllRooms(reader, rows, [...types])
      const of = ({ room_nid }: ListedRoom) => stateOf(texts.get(room_nid))
      const found = term === undefined ? rows : rows.filter((row) => isFound(row.room_id, of(row), term))
      const ordered = inOrder(found, order_by, of)
      if (dir === 'b') ordered.reverse()
      const size = Math.min(limit, MAX_LIMIT)
      const end = from + size
      const views = await viewsOf(ordered.slice(from, end))
      return {
        rooms: views.map((view) => ({ ...view })),
        offset: from,
        total_rooms: ordered.length,
        ...(end < ordered.length ? { next_batch: end } : {}),
        ...(from > 0 ? { prev_batch: Math.max(0, from - size) } : {}),
      }
    },
    isKnown: async (roomId) => (await registry.get(roomId)) !== undefined,
    async get(roomId) {
      const { nid } = await mustKnow(roomId)
      const row = await surveyRoom(patient, nid)
      if (!row) throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
      const of = stateOf((await describeRooms(db, [row], DETAILED_TYPES)).get(nid))
      return {
        ...roomView(row, of),
        ...roomDetails(of),
        joined_local_devices: row.devices,
        forgotten: row.is_forgotten,
      }
    },
    members: async (roomId) => listJoined(db, (await mustKnow(roomId)).nid),
    async state(roomId, type) {
      const room = await mustKnow(roomId)
      const nids: number[] = []
      forEachState(room.committed.state, (keyId, nid) => {
        if (type === undefined || room.keys.nameOf(keyId).type === type) nids.push(nid)
      })
      const found = [...(await room.events(nids)).values()]
      await loadReferences(events, found)
      const out = new JsonBytes().text('{').key('state', true)
      writeEventList(out, found, { now: clock.now(), tokenNid: undefined, roomId })
      return out.text('}')
    },
    async event(eventId) {
      const event = await events.getById(eventId)
      const room = event && (await registry.getByNid(event.roomNid))
      if (!event || !room) throw new ProtocolError('M_NOT_FOUND', 'This server has no such event.')
      await loadReferences(events, [event])
      const out = new JsonBytes().text('{').key('event', true)
      writeClientEvent(out, event, { now: clock.now(), tokenNid: undefined, roomId: room.id })
      return out.text('}')
    },
  }
}
