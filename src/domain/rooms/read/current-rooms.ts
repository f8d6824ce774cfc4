import { createCache } from '../../../core/cache.ts'
import type { RoomId } from '../../../core/ids.ts'
import type { Database } from '../../../store/db/db.ts'
import { perTick } from '../../../store/db/per-tick.ts'
import { readRoomNews } from '../../../store/rooms/room-news.ts'
import { findRoomStamps, type RoomStamp } from '../../../store/rooms/room-stamps.ts'
import {
  LARGE_ROOMS_REMEMBERED,
  MAX_EVENTS_MOVED_ON,
  MAX_STANDBY_ROOM_BYTES,
  MAX_STANDBY_TARGETS,
} from '../../limits/cluster.ts'
import { OnlyWhereServed } from '../../standby/only-where-served.ts'
import { createEventCache, type EventCache } from '../room/event-cache.ts'
import type { Room } from '../room/room.ts'
import { createRoomLoader, type RoomLoaderParts } from '../room/room-loader.ts'
import type { RoomMemory } from '../room/room-memory.ts'
import { moveOn } from './moving-on.ts'

/** A version of a room, and when it was read: after a lost connection, the database may use the same version for another write. */
interface Version {
  readonly stamp: RoomStamp
  readonly era: number
}

/** A room as it was after one write of it, with everything that was read of it since. */
export interface CurrentRoom<View> {
  readonly era: number
  readonly room: Room
  readonly events: EventCache
  readonly view: View
  /** Set while its newer events are read. Whether it moved on by them. */
  moving?: Promise<boolean> | undefined
}

export interface CurrentRoomParts<View> {
  readonly db: Database
  readonly serverName: RoomLoaderParts['serverName']
  readonly budget: RoomMemory['budget']
  /** Makes what reads one copy of a room. */
  viewOf(room: Room, events: EventCache): View
}

const VIEW_BYTES = 4_000
/** A room that is written while it is read is read again so often. */
const MAX_LOADS = 3
/** A request may meet a copy that moves on by what was read before the write that the request must see. */
const MAX_MOVES = 2

/**
 * Rooms as a node that stands by reads them. It hears of no write, so each request first asks the database for the version of the room's
 * head, which every write of the room raises. What is in memory of the room is kept under that version. If only new events came since,
 * the copy moves on by them; otherwise it is another room, of which all is read anew. So nothing that was read before a write is shown after it.
 * Nor is anything that was read before a connection to the database was lost: another server may answer then, on which the last writes
 * never happened.
 *
 * @returns what reads the room; undefined if this server does not know the room
 * @throws OnlyWhereServed for a room whose members are still being fetched, and for one that is large or is written too often
 */
export function createCurrentRooms<View>(parts: CurrentRoomParts<View>): (roomId: RoomId) => Promise<View | undefined> {
  const { db, serverName, budget, viewOf } = parts
  const copies = budget.part<number, CurrentRoom<View>>({
    name: 'rooms',
    bytesOf: ({ room }) => VIEW_BYTES + room.bytes,
    gone: ({ events }) => events.forgetAll(),
  })
  const loading = new Map<string, Promise<CurrentRoom<View>>>()
  /** Rooms that are read anew after each write at too great a cost. */
  const large = createCache<number, true>(LARGE_ROOMS_REMEMBERED)

  const versions = perTick(async (roomIds: readonly RoomId[]) => {
    const era = db.era()
    const rows = await findRoomStamps(db, roomIds)
    return new Map(rows.map((stamp): [RoomId, Version] => [stamp.room_id, { stamp, era }]))
  })
  const versionOf = async (roomId: RoomId): Promise<Version | undefined> => (await versions([roomId])).get(roomId)

  /** Its parts are read by several queries. If none was written meanwhile, they are of one moment. */
  async function load(first: Version): Promise<CurrentRoom<View>> {
    let version = first
    const { room_id, room_nid } = first.stamp
    for (let loads = 0; loads < MAX_LOADS; loads++) {
      const events = createEventCache({ db, budget, recentTargets: MAX_STANDBY_TARGETS })
      const loadRooms = createRoomLoader({ db, events, serverName, partialStateRooms: { of: () => undefined } })
      const room = (await loadRooms([room_nid])).get(room_nid)
      const after = await versionOf(room_id)
      if (room === undefined || after === undefined || after.stamp.lacks_members) break
      const isLarge = room.bytes > MAX_STANDBY_ROOM_BYTES
      // Also one that is written so often that no copy of it is ever true.
      if (isLarge) large.set(room.nid, true)
      if (textOf(after) === textOf(version)) return keep(room, version.era, events)
      if (isLarge) break
      version = after
    }
    throw new OnlyWhereServed('the room is written too often to be read here')
  }

  function keep(room: Room, era: number, events: EventCache): CurrentRoom<View> {
    const current = { era, room, events, view: viewOf(room, events) }
    // Nobody begins to read the older copy any more.
    copies.peek(room.nid)?.events.forgetAll()
    copies.set(room.nid, current)
    return current
  }

  async function loadOnce(version: Version): Promise<CurrentRoom<View>> {
    const text = textOf(version)
    let promise = loading.get(text)
    if (promise === undefined) {
      promise = load(version).finally(() => loading.delete(text))
      loading.set(text, promise)
    }
    return promise
  }

  async function readNews(known: CurrentRoom<View>): Promise<boolean> {
    const { era, room } = known
    const news = await readRoomNews(db, room.nid, room.committed.pos, MAX_EVENTS_MOVED_ON + 1)
    if (news === undefined || db.era() !== era || !(await moveOn(known, news, serverName))) return false
    copies.grown(room.nid, known)
    return true
  }

  /** @returns whether the copy shows what was written up to this version */
  async function movesOn(known: CurrentRoom<View>, version: Version): Promise<boolean> {
    for (let moves = 0; moves < MAX_MOVES && isNear(known, version); moves++) {
      known.moving ??= readNews(known).finally(() => {
        known.moving = undefined
      })
      if (!(await known.moving)) return false
      if (isTrue(known, version)) return true
    }
    return false
  }

  return async (roomId) => {
    const version = await versionOf(roomId)
    if (version === undefined) return undefined
    const { stamp } = version
    if (stamp.lacks_members) throw new OnlyWhereServed('the members of the room are still being fetched')
    const known = copies.get(stamp.room_nid)
    if (known && (isTrue(known, version) || (await movesOn(known, version)))) return known.view
    if (large.get(stamp.room_nid)) throw new OnlyWhereServed('the room is too large to be read again after each write')
    return (await loadOnce(version)).view
  }
}

function isTrue({ era, room }: CurrentRoom<unknown>, version: Version): boolean {
  const { head_version, purged_to } = version.stamp
  if (era !== version.era || room.purgedTo !== (purged_to ?? Number.NEGATIVE_INFINITY)) return false
  return room.committed.version >= head_version
}

/** Whether few events may lead from the copy to this version. */
function isNear({ era, room }: CurrentRoom<unknown>, { era: now, stamp }: Version): boolean {
  return era === now && stamp.head_version - room.committed.version <= MAX_EVENTS_MOVED_ON
}

function textOf({ era, stamp: { room_nid, head_version, purged_to } }: Version): string {
  return `${era} ${room_nid} ${head_version} ${purged_to}`
}
