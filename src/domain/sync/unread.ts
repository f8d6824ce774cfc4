import type { ByteBudget } from '../../core/byte-budget.ts'
import type { Reader } from '../../store/db/db.ts'
import type { RedactedPlace } from '../../store/events/unread-writes.ts'
import type { PushRules } from '../push/rules.ts'
import type { IgnoredUsers } from '../rooms/read/ignored-users.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { MAIN_THREAD, namedThread } from '../rooms/room/threads.ts'
import type { UnreadNews } from '../rooms/write/unread-news.ts'
import { type Arrival, type Mark, type RoomUnread, totalOf, type UnreadCounts } from './unread-mark.ts'
import { createUnreadMarks } from './unread-marks.ts'

export type { RoomUnread, UnreadCounts } from './unread-mark.ts'

/** In its main timeline, and in any of its threads. */
type Beginnings = Mark['beginnings']

interface RoomCount {
  readonly nid: number
  readonly notifiable: number
}

/**
 * Unread counts by arithmetic. A room counts the notifiable events of its main timeline; the unread count is the count now minus the count
 * at the last event read. Events in threads are one row each, for all readers together. Sending counts as reading the thread, or the main
 * timeline. Kept one by one are mentions, and what users with own push rules make of events. What ignored users say is subtracted when it
 * is read. (docs/decisions/0003)
 */
export interface Unread {
  /** Main timeline and threads together. @param rooms the rooms and their current counts of notifiable events */
  counts(userNid: number, rooms: readonly RoomCount[]): Promise<Map<number, UnreadCounts>>
  /** Reads the marks of a user in rooms into memory, in one query. */
  know(userNid: number, roomNids: readonly number[]): Promise<void>
  /** The counts of one room; synchronous where the user's mark is in memory. */
  count(userNid: number, roomNid: number, notifiable: number): RoomUnread | Promise<RoomUnread>
  /** The counts of one room, where the user's mark is in memory. */
  peek(userNid: number, roomNid: number, notifiable: number): RoomUnread | undefined
  /** After which timeline positions of a room something may be unread; synchronous where the user's mark is in memory. */
  beginnings(userNid: number, roomNid: number): Beginnings | Promise<Beginnings | undefined>
  /** Whether a user has read an event; synchronous where the user's mark is in memory. */
  hasRead(userNid: number, event: RoomEvent): boolean | Promise<boolean>
  /** A user has read up to an event. @param threadId the root of a thread, `main`, or '' for the whole room */
  read(userNid: number, event: RoomEvent, threadId: string): void
  /** An event was committed. @param news if it is in a thread, or stands out to anybody */
  appended(event: RoomEvent, news: UnreadNews | undefined): void
  /** An event was redacted. @param pos the room's newest position after that */
  redacted(place: RedactedPlace, pos: number): void
  /** Events of a room were removed: its marks are loaded again. */
  forgetRoom(roomNid: number): void
  /** Commits were missed: all marks are loaded again. */
  forgetAll(): void
}

/** What an event is to those who ignore its sender. */
const IGNORED = { notifies: false, highlights: false }
const NOTHING: RoomUnread = { main: { notification_count: 0, highlight_count: 0 }, threads: new Map() }

export function createUnread(parts: {
  readonly db: Reader
  readonly budget: ByteBudget
  readonly pushRules: Pick<PushRules, 'of' | 'changedAt'>
  readonly ignoredUsers: Pick<IgnoredUsers, 'of' | 'onChange'>
}): Unread {
  const marks = createUnreadMarks(parts)
  parts.ignoredUsers.onChange(marks.forget)
  const countOf = (mark: Mark | undefined, notifiable: number) => mark?.counts(notifiable) ?? NOTHING

  return {
    async counts(userNid, rooms) {
      const unknown = rooms.filter(({ nid }) => !marks.of(userNid, nid)).map(({ nid }) => nid)
      const loaded = unknown.length > 0 ? await marks.load(userNid, unknown) : undefined
      const marked = (nid: number) => marks.of(userNid, nid) ?? loaded?.get(nid)
      return new Map(rooms.map(({ nid, notifiable }) => [nid, totalOf(countOf(marked(nid), notifiable))]))
    },
    async know(userNid, roomNids) {
      const unknown = roomNids.filter((nid) => !marks.of(userNid, nid))
      if (unknown.length > 0) await marks.load(userNid, unknown)
    },
    count(userNid, roomNid, notifiable) {
      const mark = marks.of(userNid, roomNid)
      if (mark) return mark.counts(notifiable)
      return marks.load(userNid, [roomNid]).then((found) => countOf(found.get(roomNid), notifiable))
    },
    peek: (userNid, roomNid, notifiable) => marks.of(userNid, roomNid)?.counts(notifiable),
    beginnings(userNid, roomNid) {
      const mark = marks.of(userNid, roomNid)
      return mark ? mark.beginnings : marks.load(userNid, [roomNid]).then((found) => found.get(roomNid)?.beginnings)
    },
    hasRead(userNid, event) {
      const rootId = namedThread(event) ?? ''
      const mark = marks.of(userNid, event.roomNid)
      if (mark) return mark.hasRead(event.pos, rootId)
      return marks
        .load(userNid, [event.roomNid])
        .then((found) => found.get(event.roomNid)?.hasRead(event.pos, rootId) === true)
    },
    read(userNid, event, threadId) {
      const apply = (mark: Mark) => mark.read(event, threadId)
      marks.change({ roomNid: event.roomNid, pos: Number.POSITIVE_INFINITY, apply }, userNid)
    },
    appended(event, news) {
      const { roomNid, pos, senderNid } = event
      const rootId = news?.rootId ?? ''
      // Whoever joins has read everything before.
      const isOwnMembership = event.type === 'm.room.member' && event.pdu.state_key === event.sender
      const sent = isOwnMembership ? '' : rootId || MAIN_THREAD
      marks.change({ roomNid, pos, apply: (mark) => mark.read(event, sent) }, senderNid)
      if (!news) return
      const { counts, noticed, deaf } = news
      const arrive = (mark: Mark, userNid: number, to?: Arrival['noticed']): boolean => {
        if (userNid !== senderNid) mark.arrived({ pos, rootId, counts, noticed: to })
        return true
      }
      if (rootId === '' || !counts) {
        for (const one of noticed) {
          marks.change({ roomNid, pos, apply: (mark, userNid) => arrive(mark, userNid, one) }, one.userNid)
        }
        const ignored = { roomNid, pos, apply: (mark: Mark, userNid: number) => arrive(mark, userNid, IGNORED) }
        for (const userNid of deaf) marks.change(ignored, userNid)
        return
      }
      const byUser = new Map(noticed.map((one) => [one.userNid, one]))
      const noticedBy = (userNid: number) => byUser.get(userNid) ?? (deaf.has(userNid) ? IGNORED : undefined)
      marks.change({ roomNid, pos, apply: (mark, userNid) => arrive(mark, userNid, noticedBy(userNid)) })
    },
    redacted({ roomNid, pos: at, counted, isInMain }, pos) {
      marks.change({ roomNid, pos, apply: (mark) => isInMain && mark.redacted(at, counted) })
    },
    forgetRoom: (roomNid) => marks.change({ roomNid, pos: Number.POSITIVE_INFINITY, apply: () => false }),
    forgetAll: marks.forgetAll,
  }
}
