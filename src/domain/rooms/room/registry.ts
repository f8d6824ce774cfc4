import type { ByteBudget } from '../../../core/byte-budget.ts'
import { createCache } from '../../../core/cache.ts'
import { ProtocolError } from '../../../core/errors.ts'
import { displayNameOf } from '../../../core/event/content.ts'
import type { Pdu } from '../../../core/event/format.ts'
import { groupBy } from '../../../core/group-by.ts'
import type { RoomId, ServerName } from '../../../core/ids.ts'
import { serverOf } from '../../../core/ids.ts'
import { integerOf } from '../../../core/large-integers.ts'
import { roomVersion } from '../../../core/room-version.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { Reader } from '../../../store/db/db.ts'
import { perTick } from '../../../store/db/per-tick.ts'
import { getStateKeys, loadStates, type StateKeyRow } from '../../../store/events/state.ts'
import { countMembers, findRoomNid, getJoinedOfServer, getRooms, type RoomRow } from '../../../store/rooms/rooms.ts'
import type { EventCache } from './event-cache.ts'
import type { PartialStateRooms } from './partial-state-rooms.ts'
import { Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'
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
  /** A room is gone for good: nobody finds it any more. */
  remove(roomNid: number, roomId: RoomId): void
  /** Changes were missed: every room is read again. */
  forgetAll(): void
  /** Bytes held. */
  readonly bytes: number
}

export interface RegistryParts {
  readonly db: Reader
  readonly events: EventCache
  readonly serverName: ServerName
  readonly partialStateRooms: Pick<PartialStateRooms, 'of'>
  readonly budget: ByteBudget
}

const ROOM_IDS_REMEMBERED = 20_000

export function createRoomRegistry({ db, events, serverName, partialStateRooms, budget }: RegistryParts): RoomRegistry {
  const rooms = budget.part<number, Room>({ bytesOf: ({ bytes }) => bytes })
  const nids = createCache<RoomId, number>(ROOM_IDS_REMEMBERED)
  const loading = new Map<number, Promise<Room>>()
  /** Numbers of rooms that were removed; none is given twice. */
  const gone = new Set<number>()

  /** Reads many rooms in a handful of queries, however many they are. */
  async function read(roomNids: readonly number[]): Promise<Map<number, Room>> {
    const rows = await getRooms(db, roomNids)
    const points = new Map(rows.map((row) => [row.room_nid, { chain: row.state_chain, seq: row.state_seq }]))
    const [keys, states, extremities, members, counts] = await Promise.all([
      getStateKeys(db, roomNids),
      loadStates(db, points),
      events.load(rows.flatMap((row) => row.extremities)),
      getJoinedOfServer(db, roomNids, serverName),
      countMembers(db, roomNids),
    ])
    const keysOf = groupBy(keys, (key) => key.room_nid)
    const read = new Map(
      rows.map((row) => {
        const { room_nid: nid } = row
        return [nid, roomFrom(row, keysOf.get(nid) ?? [], states.get(nid)!, extremities)]
      }),
    )
    for (const { room_nid, user_nid, user_id, changed_at, json } of members) {
      if (serverOf(user_id) !== serverName) continue
      const displayName = displayNameOf(JSON.parse(json) as Pdu)
      const member = { userNid: user_nid, userId: user_id, displayName, since: changed_at }
      read.get(room_nid)?.localMembers.set(user_nid, member)
    }
    for (const { room_nid, membership, count } of counts) {
      const room = read.get(room_nid)
      if (room) room.counts[membership] = count
    }
    return read
  }

  const gather = perTick(read)

  function roomFrom(
    row: RoomRow,
    keys: readonly StateKeyRow[],
    state: StateMap,
    extremities: ReadonlyMap<number, RoomEvent>,
  ): Room {
    const version = roomVersion(row.room_version)
    if (!version)
      throw new Error(`room ${row.room_id} has version ${row.room_version}, which this Hearth does not know`)
    const head = {
      version: row.head_version,
      extremities: row.extremities.flatMap((nid) => {
        const event = extremities.get(nid)
        return event ? [{ nid, id: event.id, reference: event.reference(version), after: event.pointAfter }] : []
      }),
      merged: row.merged ?? row.extremities.length,
      depth: integerOf(BigInt(row.depth)),
      pos: row.last_pos,
      nid: row.last_nid,
      notifiable: row.notifiable,
      chain: row.state_chain,
      seq: row.state_seq,
      state,
      tip: row.state_tip,
      lastChain: row.last_chain,
    }
    const room = new Room({ nid: row.room_nid, id: row.room_id, version, keys: new StateKeys(keys), head, events })
    room.partialState = partialStateRooms.of(row.room_nid)
    return room
  }

  async function load(roomNid: number): Promise<Room> {
    try {
      const room = (await gather([roomNid])).get(roomNid)
      if (!room) throw new Error(`there is no room ${roomNid}`)
      return adopt(room)
    } finally {
      loading.delete(roomNid)
    }
  }

  /** Takes in a room that was loaded, unless another that is as new or newer has been confirmed since. */
  function adopt(loaded: Room): Room {
    const known = rooms.get(loaded.nid)
    if (known?.alive && known.committed.version >= loaded.committed.version) return known
    confirm(loaded)
    return loaded
  }

  function confirm(room: Room): void {
    if (gone.has(room.nid)) return
    rooms.set(room.nid, room)
    nids.set(room.id, room.nid)
  }

  function getByNid(roomNid: number): Promise<Room> {
    if (gone.has(roomNid)) return Promise.reject(removed())
    const known = rooms.get(roomNid)
    if (known?.alive) return Promise.resolve(known)
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

/** For a reader who found the room a moment ago: the next look does not. */
function removed(): ProtocolError {
  const message = 'A room was removed just now. Send the request again.'
  return new ProtocolError('M_UNKNOWN', message, { status: 503, extra: { retry_after_ms: 100 } })
}
