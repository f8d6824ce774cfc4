import { type ServerName, serverOf, type UserId } from '../../../core/ids.ts'
import { integerOf } from '../../../core/large-integers.ts'
import { roomVersion } from '../../../core/room-version.ts'
import type { StateMap } from '../../../core/state/trie.ts'
import type { Reader } from '../../../store/db/db.ts'
import { perTick } from '../../../store/db/per-tick.ts'
import {
  type CurrentState,
  getStateKeys,
  loadCurrentStates,
  loadStates,
  type StateKeyRow,
  type StatePoint,
} from '../../../store/events/state.ts'
import { countMembers, getJoinedOfServer, getRooms, type RoomRow } from '../../../store/rooms/rooms.ts'
import type { EventCache } from './event-cache.ts'
import type { PartialStateRooms } from './partial-state-rooms.ts'
import { Room } from './room.ts'
import type { RoomEvent } from './room-event.ts'
import { StateKeys } from './state-keys.ts'

/** Reads rooms from the database, by number. All rooms that are requested in one tick are read together. */
export type RoomLoader = (roomNids: readonly number[]) => Promise<ReadonlyMap<number, Room>>

export interface RoomLoaderParts {
  readonly db: Reader
  readonly events: EventCache
  readonly serverName: ServerName
  readonly partialStateRooms: Pick<PartialStateRooms, 'of'>
}

export function createRoomLoader({ db, events, serverName, partialStateRooms }: RoomLoaderParts): RoomLoader {
  /** Reads any number of rooms in a handful of queries. */
  async function read(roomNids: readonly number[]): Promise<Map<number, Room>> {
    // All at once. The database answers in this order, so that what is read with a room is as new as the room, or newer.
    const reading = getRooms(db, roomNids)
    const [rows, current, keys, members, counts, extremities] = await Promise.all([
      reading,
      loadCurrentStates(db, roomNids),
      getStateKeys(db, roomNids),
      getJoinedOfServer(db, roomNids, serverName),
      countMembers(db, roomNids),
      reading.then((rows) => events.load(rows.flatMap((row) => row.extremities))),
    ])
    const states = await statesOf(rows, current)
    const read = new Map(
      rows.map((row) => {
        const { room_nid: nid } = row
        return [nid, roomFrom(row, keys.get(nid) ?? [], states.get(nid)!, extremities)]
      }),
    )
    for (const { room_nid, user_nids, user_ids, changed } of members) {
      const room = read.get(room_nid)
      const userIds = JSON.parse(user_ids) as UserId[]
      for (let index = 0; index < user_nids.length; index++) {
        const userNid = user_nids[index]!
        const userId = userIds[index]!
        if (serverOf(userId) !== serverName) continue
        room?.localMembers.set(userNid, { userNid, userId, displayName: undefined, since: changed[index]! })
      }
    }
    for (const { room_nid, membership, count } of counts) {
      const room = read.get(room_nid)
      if (room) room.counts[membership] = count
    }
    return read
  }

  /** The states of the rooms as they were read; of one that was written meanwhile, the state is read again. */
  async function statesOf(rows: readonly RoomRow[], current: ReadonlyMap<number, CurrentState>) {
    const states = new Map<number, StateMap>()
    const moved = new Map<number, StatePoint>()
    for (const { room_nid: nid, state_chain: chain, state_seq: seq } of rows) {
      const now = current.get(nid)
      if (now?.chain === chain && now.seq === seq) states.set(nid, now.state)
      else moved.set(nid, { chain, seq })
    }
    if (moved.size > 0) for (const [nid, state] of await loadStates(db, moved)) states.set(nid, state)
    return states
  }

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
    room.lacksNames = true
    room.partialState = partialStateRooms.of(row.room_nid)
    room.purgedTo = row.purged_to ?? Number.NEGATIVE_INFINITY
    return room
  }

  return perTick(read)
}
