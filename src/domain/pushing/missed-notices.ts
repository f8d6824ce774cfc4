import {
  getMissedEvents,
  type MissedEvent,
  type PusherRow,
  type UnreadBeginnings,
} from '../../store/accounts/pushers.ts'
import type { Database } from '../../store/db/db.ts'
import type { Clock } from '../clock.ts'
import { MAX_MISSED_READS_AT_ONCE, MIN_MISSED_EVENTS_PER_ROOM, MISSED_EVENTS_PER_PAGE } from '../limits/pushers.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Unread } from '../sync/unread.ts'
import type { UserRooms } from '../sync/user-rooms.ts'
import type { Evaluation } from './evaluation.ts'
import type { Notice } from './notice.ts'
import type { MissedNotices } from './pusher-queue.ts'
import type { UnreadRooms } from './unread-rooms.ts'

/** Reads what a pusher missed between two positions of the stream: unread events of the user's rooms, or of one, and open invitations. */
export type ReadMissed = (row: PusherRow, after: number, upTo: number, roomNid?: number) => Promise<MissedNotices>

export interface MissedParts {
  readonly db: Database
  readonly clock: Clock
  readonly events: Pick<EventCache, 'load'>
  readonly registry: Pick<RoomRegistry, 'getByNid'>
  readonly userRooms: Pick<UserRooms, 'of'>
  readonly unreadRooms: UnreadRooms
  readonly unread: Pick<Unread, 'know' | 'beginnings'>
  readonly evaluation: Evaluation
}

export function createMissedReader(parts: MissedParts): ReadMissed {
  const { db, clock, events, registry, userRooms, unreadRooms, unread, evaluation } = parts
  let reading = 0
  const waiting: (() => void)[] = []

  async function unreadEvents(userNid: number, after: number, upTo: number, roomNid: number | undefined) {
    const roomNids = [...(await unreadRooms.of(userNid, roomNid === undefined ? undefined : [roomNid])).keys()]
    if (roomNids.length === 0) return { found: [], upTo, isFull: false }
    await unread.know(userNid, roomNids)
    const places: UnreadBeginnings[] = []
    for (const nid of roomNids) places.push((await unread.beginnings(userNid, nid)) ?? { main: 0, threads: 0 })
    const limit = Math.max(MIN_MISSED_EVENTS_PER_ROOM, Math.floor(MISSED_EVENTS_PER_PAGE / roomNids.length))
    const found = await getMissedEvents(db.bulk, roomNids, places, { after, upTo }, limit)
    return pageOf(found, limit, upTo)
  }

  async function noticesOf(row: PusherRow, found: readonly MissedEvent[]): Promise<Notice[]> {
    const user = { userNid: row.user_nid, userId: row.user_id }
    const loaded = await events.load(found.map(({ event_nid }) => event_nid))
    const notices: Notice[] = []
    for (const { event_nid, room_nid } of found) {
      const event = loaded.get(event_nid)
      if (!event || event.redactedBy !== undefined) continue
      const room = await registry.getByNid(room_nid)
      const notified = await evaluation.ofEvent(room, event, [user], Math.min(event.ts, clock.now()))
      notices.push(...notified.map(({ notice }) => notice))
    }
    return notices
  }

  async function invitations(row: PusherRow, after: number, upTo: number, wanted?: number): Promise<Notice[]> {
    const user = { userNid: row.user_nid, userId: row.user_id }
    const notices: Notice[] = []
    for (const [roomNid, { membership, eventNid, changedAt }] of await userRooms.of(user.userNid)) {
      if (membership !== 'invite' || changedAt <= after || changedAt > upTo) continue
      if (wanted !== undefined && wanted !== roomNid) continue
      const invitation = { userNid: user.userNid, eventNid, position: changedAt }
      const notice = await evaluation.ofInvitation(roomNid, invitation, user)
      if (notice) notices.push(notice)
    }
    return notices
  }

  async function read(row: PusherRow, after: number, target: number, roomNid?: number): Promise<MissedNotices> {
    const { found, upTo, isFull } = await unreadEvents(row.user_nid, after, target, roomNid)
    const notices = [...(await noticesOf(row, found)), ...(await invitations(row, after, upTo, roomNid))]
    return { notices: notices.sort((a, b) => a.position - b.position), upTo, isFull }
  }

  return async (row, after, upTo, roomNid) => {
    if (reading >= MAX_MISSED_READS_AT_ONCE) await new Promise<void>((begin) => waiting.push(begin))
    else reading += 1
    try {
      return await read(row, after, upTo, roomNid)
    } finally {
      const next = waiting.shift()
      if (next) next()
      else reading -= 1
    }
  }
}

/** A room that gave as many events as it may has more: the page ends where the first of these rooms was cut off. */
function pageOf(found: readonly MissedEvent[], limit: number, target: number) {
  const counts = new Map<number, number>()
  let upTo = target
  for (const { room_nid, position } of found) {
    const count = (counts.get(room_nid) ?? 0) + 1
    counts.set(room_nid, count)
    if (count === limit) upTo = Math.min(upTo, position)
  }
  return { found: found.filter(({ position }) => position <= upTo), upTo, isFull: upTo < target }
}
