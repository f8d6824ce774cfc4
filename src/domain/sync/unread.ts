import type { ByteBudget } from '../../core/byte-budget.ts'
import type { Reader } from '../../store/db/db.ts'
import type { HighlightWrite } from '../../store/events/event-writes.ts'
import { getHighlights, getReadMarks } from '../../store/events/unread.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'

export interface UnreadCounts {
  readonly notification_count: number
  readonly highlight_count: number
}

interface RoomCount {
  readonly nid: number
  readonly notifiable: number
}

/** How far a user has read a room, and the highlights after that, as timeline positions. */
interface Mark {
  pos: number
  notifiable: number
  highlights: number[]
}

/**
 * Unread counts by arithmetic. A room counts its notifiable events; the unread count is the count now minus the count at the last event
 * read. Sending counts as reading. Only mentions are kept one by one.
 */
export interface Unread {
  /** @param rooms the rooms and their current counts of notifiable events */
  counts(userNid: number, rooms: readonly RoomCount[]): Promise<Map<number, UnreadCounts>>
  /** The counts of one room; synchronous where the user's marker is in memory. */
  count(userNid: number, roomNid: number, notifiable: number): UnreadCounts | Promise<UnreadCounts>
  /** Whether a user has read an event; synchronous where the user's marker is in memory. */
  hasRead(userNid: number, event: Pick<RoomEvent, 'roomNid' | 'pos' | 'notifiable'>): boolean | Promise<boolean>
  /** A user has read a room up to an event. */
  read(userNid: number, event: RoomEvent): void
  /** An event was committed, and is a highlight for some users. */
  appended(event: RoomEvent, highlights: readonly HighlightWrite[]): void
  /** Commits were missed: all read markers are loaded again. */
  forgetAll(): void
}

/** Bytes of a user's marks, and of one mark with its mentions. */
const MARKS_BYTES = 200
const MARK_BYTES = 136

export function createUnread({ db, budget }: { db: Reader; budget: ByteBudget }): Unread {
  const users = budget.part<number, Map<number, Mark>>({ bytesOf: ({ size }) => MARKS_BYTES + size * MARK_BYTES })

  async function load(userNid: number, marks: Map<number, Mark>, roomNids: readonly number[]): Promise<void> {
    const [rows, highlights] = await Promise.all([
      getReadMarks(db, userNid, roomNids),
      getHighlights(db, userNid, roomNids),
    ])
    for (const row of rows) {
      const mark = marks.get(row.room_nid)
      if (mark && mark.pos >= row.room_pos) continue
      marks.set(row.room_nid, {
        pos: row.room_pos,
        notifiable: row.notifiable,
        highlights: highlights
          .filter(({ room_nid, room_pos }) => room_nid === row.room_nid && room_pos > row.room_pos)
          .map(({ room_pos }) => room_pos),
      })
    }
  }

  function move(userNid: number, event: RoomEvent): void {
    const mark = users.get(userNid)?.get(event.roomNid)
    if (!mark || event.pos <= mark.pos) return
    mark.pos = event.pos
    mark.notifiable = event.notifiable
    mark.highlights = mark.highlights.filter((pos) => pos > event.pos)
  }

  async function counts(userNid: number, rooms: readonly RoomCount[]): Promise<Map<number, UnreadCounts>> {
    let marks = users.get(userNid)
    if (!marks) {
      marks = new Map()
      users.set(userNid, marks)
    }
    const unknown = rooms.filter(({ nid }) => !marks.has(nid)).map(({ nid }) => nid)
    if (unknown.length > 0) await load(userNid, marks, unknown)
    return new Map(rooms.map(({ nid, notifiable }) => [nid, countSince(marks.get(nid), notifiable)]))
  }

  return {
    counts,
    count(userNid, roomNid, notifiable) {
      const mark = users.get(userNid)?.get(roomNid)
      if (mark) return countSince(mark, notifiable)
      return counts(userNid, [{ nid: roomNid, notifiable }]).then((found) => found.get(roomNid)!)
    },
    hasRead(userNid, { roomNid, pos, notifiable }) {
      const mark = users.get(userNid)?.get(roomNid)
      if (mark) return pos <= mark.pos
      return counts(userNid, [{ nid: roomNid, notifiable }]).then(() => {
        const loaded = users.get(userNid)?.get(roomNid)
        return loaded !== undefined && pos <= loaded.pos
      })
    },
    read: move,
    forgetAll: () => users.clear(),
    appended(event, highlights) {
      move(event.senderNid, event)
      for (const { userNid, eventNid } of highlights) {
        const mark = users.get(userNid)?.get(event.roomNid)
        if (mark && eventNid === event.nid && !mark.highlights.includes(event.pos)) mark.highlights.push(event.pos)
      }
    },
  }
}

function countSince(mark: Mark | undefined, notifiable: number): UnreadCounts {
  return {
    notification_count: mark ? Math.max(0, notifiable - mark.notifiable) : 0,
    highlight_count: mark?.highlights.length ?? 0,
  }
}
