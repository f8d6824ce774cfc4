import { ProtocolError } from '../../../core/errors.ts'
import type { RoomId } from '../../../core/ids.ts'
import { forEachState } from '../../../core/state/trie.ts'
import type { Database } from '../../../store/db/db.ts'
import { wholeTables } from '../../../store/db/whole-tables.ts'
import { type PagedMember, pageMembers, pageRooms, type RoomsWanted } from '../../../store/rooms/room-pages.ts'
import { describeRooms } from '../../../store/rooms/room-survey.ts'
import type { RoomRegistry } from '../../rooms/room/registry.ts'
import { type RoomView, roomView, stateOf, VIEWED_TYPES } from '../room-view.ts'

interface PageWanted {
  readonly from: number
  readonly limit: number
}

interface StateView {
  readonly event_id: string
  readonly type: string
  readonly state_key: string
  readonly sender: string
  readonly content: object
}

/** Pages of rooms and of what is in them: the database orders and cuts, and only what a page shows is read. */
export interface RoomPages {
  list(wanted: RoomsWanted): Promise<{
    readonly rooms: readonly (RoomView & { readonly events: number })[]
    readonly total: number
  }>
  /** All who have a membership. @throws ProtocolError `M_NOT_FOUND` */
  members(roomId: RoomId, page: PageWanted): Promise<{ readonly members: PagedMember[]; readonly total: number }>
  /** The current state, without its members. @throws ProtocolError `M_NOT_FOUND` */
  state(roomId: RoomId, page: PageWanted): Promise<{ readonly state: readonly StateView[]; readonly total: number }>
}

export function createRoomPages({
  db,
  registry,
}: {
  readonly db: Database
  readonly registry: Pick<RoomRegistry, 'get'>
}): RoomPages {
  const patient = wholeTables(db)

  async function mustKnow(roomId: RoomId) {
    const room = await registry.get(roomId)
    if (room) return room
    throw new ProtocolError('M_NOT_FOUND', 'This server knows no room of that id.')
  }

  return {
    async list(wanted) {
      const rows = await pageRooms(patient, wanted)
      const states = await describeRooms(db, rows, VIEWED_TYPES)
      return {
        rooms: rows.map((row) => ({ ...roomView(row, stateOf(states.get(row.room_nid))), events: row.last_pos })),
        total: rows[0]?.total ?? 0,
      }
    },
    members: async (roomId, page) => pageMembers(patient, (await mustKnow(roomId)).nid, page),
    async state(roomId, { from, limit }) {
      const room = await mustKnow(roomId)
      const found: { readonly name: string; readonly nid: number }[] = []
      forEachState(room.committed.state, (keyId, nid) => {
        const { type, stateKey } = room.keys.nameOf(keyId)
        if (type !== 'm.room.member') found.push({ name: `${type}\0${stateKey}`, nid })
      })
      found.sort((left, right) => (left.name < right.name ? -1 : 1))
      const page = found.slice(from, from + limit)
      const events = await room.events(page.map(({ nid }) => nid))
      const state = page.flatMap(({ nid }) => {
        const event = events.get(nid)
        if (event === undefined) return []
        const { type, state_key = '', sender, content } = event.pdu
        return [{ event_id: event.id, type, state_key, sender, content }]
      })
      return { state, total: found.length }
    },
  }
}
