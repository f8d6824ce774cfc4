import type { ByteBudget } from '../../../core/byte-budget.ts'
import { createCache } from '../../../core/cache.ts'
import { ProtocolError } from '../../../core/errors.ts'
import type { RoomId } from '../../../core/ids.ts'
import { findRoomNid } from '../../../store/rooms/rooms.ts'
import type { Room } from './room.ts'
import { createRoomLoader, type RoomLoaderParts } from './room-loader.ts'

/** The rooms in memory, loaded on demand. */
export interface RoomRegistry {
  /** The room, or undefined when this server does not know it. */
  get(roomId: RoomId): Promise<Room | undefined>
  getByNid(roomNid: number): Promise<Room>
  /** The room if it is in memory. */
  peek(roomNid: number): Room | undefined
  /** The room that `getByNid` gives, if that needs no waiting. */
  peekAlive(roomNid: number): Room | undefined
  /** A write of this room was committed: this copy is the true one, whatever was loaded meanwhile. */
  confirm(room: Room): void
  /** Forgets a room whose write was refused. The next `get` loads it again. */
  drop(room: Room): void
  /** A room was removed for good; nobody finds it any more. */
  remove(roomNid: number, roomId: RoomId): void
  /** Forgets all rooms, because commits were missed: each is loaded again. */
  forgetAll(): void
  /** Bytes in memory. */
  readonly bytes: number
}

export interface RegistryParts extends RoomLoaderParts {
  readonly budget: ByteBudget
}

const ROOM_IDS_REMEMBERED = 20_000

export function createRoomRegistry(parts: RegistryParts): RoomRegistry {
  const { db, budget } = parts
  const loadAll = createRoomLoader(parts)
  const rooms = budget.part<number, Room>({ name: 'rooms', bytesOf: ({ bytes }) => bytes })
  const nids = createCache<RoomId, number>(ROOM_IDS_REMEMBERED)
  const loading = new Map<number, Promise<Room>>()
  /** Numbers of rooms that were removed. No number is used twice. */
  const gone = new Set<number>()

  async function load(roomNid: number): Promise<Room> {
    try {
      const room = (await loadAll([roomNid])).get(roomNid)
      if (!room) throw new Error(`there is no room ${roomNid}`)
      return adopt(room)
    } finally {
      loading.delete(roomNid)
    }
  }

  /** Keeps a room that was loaded, unless a copy as new or newer was confirmed meanwhile. */
  function adopt(loaded: Room): Room {
    const known = rooms.peek(loaded.nid)
    if (known?.alive && known.committed.version >= loaded.committed.version) return known
    confirm(loaded)
    return loaded
  }

  function confirm(room: Room): void {
    if (gone.has(room.nid)) return
    rooms.set(room.nid, room)
    nids.set(room.id, room.nid)
  }

  function peekAlive(roomNid: number): Room | undefined {
    const known = rooms.get(roomNid)
    return known?.alive && !gone.has(roomNid) ? known : undefined
  }

  function getByNid(roomNid: number): Promise<Room> {
    if (gone.has(roomNid)) return Promise.reject(removed())
    const known = peekAlive(roomNid)
    if (known) return Promise.resolve(known)
    let promise = loading.get(roomNid)
    if (!promise) {
      promise = load(roomNid)
      loading.set(roomNid, promise)
    }
    return promise
  }

  return {
    confirm,
    getByNid,
    peek: (roomNid) => rooms.get(roomNid),
    peekAlive,
    forgetAll: () => rooms.clear(),
    get bytes() {
      return rooms.bytes
    },
    remove(roomNid, roomId) {
      gone.add(roomNid)
      const room = rooms.peek(roomNid)
      if (room) room.alive = false
      rooms.delete(roomNid)
      nids.delete(roomId)
    },
    drop(room) {
      room.alive = false
      if (rooms.peek(room.nid) === room) rooms.delete(room.nid)
    },
    async get(roomId) {
      const nid = nids.get(roomId) ?? (await findRoomNid(db, roomId))
      if (nid === undefined || gone.has(nid)) return undefined
      nids.set(roomId, nid)
      return getByNid(nid)
    },
  }
}

/** For a reader who found the room a moment ago. A second look-up does not find it. */
function removed(): ProtocolError {
  const message = 'A room was removed just now. Send the request again.'
  return new ProtocolError('M_UNKNOWN', message, { status: 503, extra: { retry_after_ms: 100 } })
}
