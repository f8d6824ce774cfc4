import type { Reader } from '../../store/db/db.ts'
import { getNotifiableCounts } from '../../store/events/unread.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Unread, UnreadCounts } from '../sync/unread.ts'
import { totalOf } from '../sync/unread-mark.ts'
import type { UserRooms } from '../sync/user-rooms.ts'

export interface UnreadRooms {
  /** The unread counts of a user in some of their rooms, or in all. Rooms where nothing is unread are left out. */
  of(userNid: number, roomNids?: readonly number[]): Promise<Map<number, UnreadCounts>>
  /** How much notifies the user in one room; undefined if memory does not tell. */
  now(userNid: number, roomNid: number): number | undefined
}

export interface UnreadRoomParts {
  readonly db: Reader
  readonly registry: Pick<RoomRegistry, 'peekAlive'>
  readonly unread: Pick<Unread, 'counts' | 'peek'>
  readonly userRooms: Pick<UserRooms, 'of' | 'peek'>
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

  async function of(userNid: number, roomNids?: readonly number[]): Promise<Map<number, UnreadCounts>> {
    const memberships = await userRooms.of(userNid)
    const joined = [...(roomNids ?? memberships.keys())].filter((nid) => memberships.get(nid)?.membership === 'join')
    const counts = await unread.counts(userNid, await heads(joined))
    return new Map([...counts].filter(([, { notification_count: count }]) => count > 0))
  }

  return {
    of,
    now(userNid, roomNid) {
      const room = registry.peekAlive(roomNid)
      const memberships = userRooms.peek(userNid)
      if (!room || !memberships) return undefined
      if (memberships.get(roomNid)?.membership !== 'join') return 0
      const counts = unread.peek(userNid, roomNid, room.committed.notifiable)
      return counts && totalOf(counts).notification_count
    },
  }
}
