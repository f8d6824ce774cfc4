import { LRUCache } from 'lru-cache'
import { displayNameOf } from '../../core/event/content.ts'
import type { Pdu } from '../../core/event/format.ts'
import type { RoomId, ServerName } from '../../core/ids.ts'
import { serverOf } from '../../core/ids.ts'
import { roomVersion } from '../../core/room-version.ts'
import type { Reader } from '../../store/db.ts'
import { countMembers, getJoinedOfServer, getRoomById, getRooms, type RoomRow } from '../../store/rooms.ts'
import { getStateKeys, lastCheckpoint, loadState } from '../../store/state.ts'
import type { EventCache } from './event-cache.ts'
import { Room } from './room.ts'
import { StateKeys } from './state-keys.ts'

/** The rooms in memory, loaded on demand. */
export interface RoomRegistry {
  /** The room, or undefined when this server knows none of that id. */
  get(roomId: RoomId): Promise<Room | undefined>
  getByNid(roomNid: number): Promise<Room>
  /** The room if it is in memory. */
  peek(roomNid: number): Room | undefined
  /** A write of this room was committed: it is the true one, whatever was loaded meanwhile. */
  confirm(room: Room): void
  /** Forgets a room whose write was refused; the next `get` loads what is true. */
  drop(room: Room): void
}

export interface RegistryParts {
  readonly db: Reader
  readonly events: EventCache
  readonly serverName: ServerName
  /** Rooms kept in memory. */
  readonly maxRooms: number
}

export function createRoomRegistry({ db, events, serverName, maxRooms }: RegistryParts): RoomRegistry {
  const rooms = new LRUCache<number, Room>({ max: maxRooms })
  const nids = new LRUCache<RoomId, number>({ max: maxRooms * 4 })
  const loading = new Map<number, Promise<Room>>()

  async function fill(row: RoomRow): Promise<Room> {
    const version = roomVersion(row.room_version)
    if (!version)
      throw new Error(`room ${row.room_id} has version ${row.room_version}, which this Hearth does not know`)
    const point = { chain: row.state_chain, seq: row.state_seq }
    const [keys, state, checkpoint, extremities, members, counts] = await Promise.all([
      getStateKeys(db, row.room_nid),
      loadState(db, row.room_nid, point),
      lastCheckpoint(db, row.room_nid, row.state_chain),
      events.load(row.extremities),
      getJoinedOfServer(db, row.room_nid, serverName),
      countMembers(db, [row.room_nid]),
    ])
    const head = {
      version: row.head_version,
      extremities: [...extremities.values()].map((event) => ({
        nid: event.nid,
        id: event.id,
        reference: event.reference(version),
      })),
      depth: row.depth,
      pos: row.last_pos,
      nid: row.last_nid,
      notifiable: row.notifiable,
      ...point,
      state,
    }
    const room = new Room({ nid: row.room_nid, id: row.room_id, version, keys: new StateKeys(keys), head, events })
    room.checkpointSeq = checkpoint
    for (const { user_nid, user_id, event_nid, json } of members) {
      if (serverOf(user_id) !== serverName) continue
      const displayName = displayNameOf(JSON.parse(json) as Pdu)
      room.localMembers.set(user_nid, { userNid: user_nid, userId: user_id, displayName, since: event_nid })
    }
    for (const { membership, count } of counts) room.counts[membership] = count
    return room
  }

  function load(row: RoomRow): Promise<Room> {
    let promise = loading.get(row.room_nid)
    if (!promise) {
      promise = fill(row)
        .then(adopt)
        .finally(() => loading.delete(row.room_nid))
      loading.set(row.room_nid, promise)
    }
    return promise
  }

  /** Takes in a room that was loaded, unless another that is as new or newer has been confirmed since. */
  function adopt(loaded: Room): Room {
    const known = rooms.get(loaded.nid)
    if (known?.alive && known.committed.version >= loaded.committed.version) return known
    confirm(loaded)
    return loaded
  }

  function confirm(room: Room): void {
    rooms.set(room.nid, room)
    nids.set(room.id, room.nid)
  }

  async function getByNid(roomNid: number): Promise<Room> {
    const known = rooms.get(roomNid)
    if (known?.alive) return known
    const [row] = await getRooms(db, [roomNid])
    if (!row) throw new Error(`there is no room ${roomNid}`)
    return load(row)
  }

  return {
    confirm,
    getByNid,
    peek: (roomNid) => rooms.get(roomNid),
    drop(room) {
      room.alive = false
      if (rooms.peek(room.nid) === room) rooms.delete(room.nid)
    },
    async get(roomId) {
      const nid = nids.get(roomId)
      if (nid !== undefined) return getByNid(nid)
      const row = await getRoomById(db, roomId)
      if (!row) return undefined
      nids.set(roomId, row.room_nid)
      return load(row)
    },
  }
}
