import type { Reader } from '../../store/db/db.ts'
import { getNotifiableCounts } from '../../store/events/unread.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Unread, UnreadCounts } from '../sync/unread.ts'
import type { UserRooms } from '../sync/user-rooms.ts'

/** The unread counts of a user in some of their rooms, or in all. Rooms where nothing is unread are left out. */
export type UnreadRooms = (userNid: number, roomNids?: readonly number[]) => Promise<Map<number, UnreadCounts>>

export interface UnreadRoomParts {
  readonly db: Reader
  readonly registry: Pick<RoomRegistry, 'peekAlive'>
  readonly unread: Pick<Unread, 'counts'>
  readonly userRooms: Pick<UserRooms, 'of'>
}

export function createUnreadRooms({ db, registry, unread, userRooms }: UnreadRoomParts): UnreadRooms {
  /** The rooms' counts of notifiable events. Rooms that are not in memory are not loaded for it. */
  async function heads(roomNids: readonly number[]): Promise<{ nid: number; notifiable: number }[]> {
    const missing = roomNids.filter((nid) => !registry.peekAlive(nid))
    const isMissing = new Set(missing)
    const read = missing.length === 0 ? [] : await getNotifiableCounts(db, missing)
    const inMemory = roomNids.flatMap((nid) => {
      const room = isMissing.has(nid) ? undefined : registry.peekAlive(nid)
      return room ? [{ nid, notifiable: room.committed.notifiable }] : []
    })
    return [...inMemory, ...read.map(({ room_nid, notifiable }) => ({ nid: room_nid, notifiable }))]
  }

  return async (userNid, roomNids) => {
    const memberships = await userRooms.of(userNid)
    const joined = [...(roomNids ?? memberships.keys())].filter((nid) => memberships.get(nid)?.membership === 'join')
    const counts = await unread.counts(userNid, await heads(joined))
    return new Map([...counts].filter(([, { notification_count: count }]) => count > 0))
  }
}
