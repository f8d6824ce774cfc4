import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import type { EventId, RoomId, UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { forEachState } from '../../core/state/trie.ts'
import type { Database } from '../../store/db/db.ts'
import { describeRooms, listJoined, type SurveyedRoom, surveyRoom, surveyRooms } from '../../store/rooms/room-survey.ts'
import type { Clock } from '../clock.ts'
import { writeEventList } from '../rooms/read/event-lists.ts'
import { loadReferences, writeClientEvent } from '../rooms/room/client-event.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Room } from '../rooms/room/room.ts'
import {
  compareRooms,
  isFound,
  type RoomOrder,
  type RoomView,
  roomView,
  stateOf,
  topicAndAvatar,
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
  readonly config: Pick<Config, 'server_name'>
  readonly db: Database
  readonly clock: Clock
  readonly registry: RoomRegistry
  readonly events: EventCache
}

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000
const ROOMS_AT_ONCE = 200

export function createRoomDesk(parts: RoomDeskParts): RoomDesk {
  const { config, db, clock, registry, events } = parts
  const patient = { query: db.scan }

  /** Reads the database and not the room cache: a list of all rooms would push out those in use. */
  async function viewsOf(rows: readonly SurveyedRoom[]): Promise<RoomView[]> {
    const views: RoomView[] = []
    for (let start = 0; start < rows.length; start += ROOMS_AT_ONCE) {
      const some = rows.slice(start, start + ROOMS_AT_ONCE)
      const states = await describeRooms(patient, some, VIEWED_TYPES)
      views.push(...some.map((row) => roomView(row, stateOf(states.get(row.room_nid)))))
    }
    return views
  }

  async function mustKnow(roomId: RoomId): Promise<Room> {
    const room = await registry.get(roomId)
    if (room) return room
    throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
  }

  return {
    async list({ from = 0, limit = DEFAULT_LIMIT, order_by = 'name', dir = 'f', search_term: term, ...wanted }) {
      const rows = (await surveyRooms(patient, config.server_name)).filter(
        ({ is_public, joined }) =>
          (wanted.public_rooms ?? is_public) === is_public && (wanted.empty_rooms ?? joined === 0) === (joined === 0),
      )
      const found = (await viewsOf(rows)).filter((view) => term === undefined || isFound(view, term))
      found.sort(compareRooms(order_by))
      if (dir === 'b') found.reverse()
      const end = from + Math.min(limit, MAX_LIMIT)
      return {
        rooms: found.slice(from, end).map((view) => ({ ...view })),
        offset: from,
        total_rooms: found.length,
        ...(end < found.length ? { next_batch: end } : {}),
        ...(from > 0 ? { prev_batch: Math.max(0, from - Math.min(limit, MAX_LIMIT)) } : {}),
      }
    },
    async get(roomId) {
      const { nid } = await mustKnow(roomId)
      const row = await surveyRoom(patient, nid)
      if (!row) throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
      const of = stateOf((await describeRooms(db, [row], VIEWED_TYPES)).get(nid))
      return {
        ...roomView(row, of),
        ...topicAndAvatar(of),
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
