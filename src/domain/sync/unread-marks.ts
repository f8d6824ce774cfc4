import type { ByteBudget } from '../../core/byte-budget.ts'
import { groupBy } from '../../core/group-by.ts'
import { DEFAULT_PUSH_RULES } from '../../core/push/compiled-rules.ts'
import type { Reader } from '../../store/db/db.ts'
import { getUnread } from '../../store/events/unread.ts'
import { MAX_UNREAD_LOOKED_AT, MAX_UNREAD_THREADS } from '../limits/unread.ts'
import type { PushRules } from '../push/rules.ts'
import type { IgnoredUsers } from '../rooms/read/ignored-users.ts'
import { Mark, type ThreadTotal } from './unread-mark.ts'

/** Something that moves marks of a room. */
export interface Change {
  readonly roomNid: number
  /** The room's timeline position after it. What was read from the database at that position or later includes it. */
  readonly pos: number
  /** False: the mark must be loaded again. */
  apply(mark: Mark, userNid: number): boolean
}

/** Marks that are being read from the database. */
interface Flight {
  readonly userNid: number
  readonly roomNids: ReadonlySet<number>
  readonly missed: Change[]
  isVoid: boolean
}

/** The marks of one user. */
interface UserMarks extends ThreadTotal {
  readonly byRoom: Map<number, Mark>
}

/** Bytes of a user's marks, of one with its places in the indexes, and of a thread in one. Measured. */
const MARKS_BYTES = 280
const MARK_BYTES = 260
const THREAD_BYTES = 240
const MOST = { threads: MAX_UNREAD_THREADS, lookedAt: MAX_UNREAD_LOOKED_AT }
/** How often marks are read again because they moved meanwhile. */
const MAX_LOADS = 4

/** The marks of users in rooms, as far as they fit in memory, kept up to date by changes. */
export interface UnreadMarks {
  /** A mark that is in memory. */
  of(userNid: number, roomNid: number): Mark | undefined
  /** Reads marks from the database. Rooms that the user was never in are left out. */
  load(userNid: number, roomNids: readonly number[]): Promise<ReadonlyMap<number, Mark>>
  /** Moves the marks of a user, or of all who are in the room: those in memory, and those that are being read. */
  change(made: Change, userNid?: number): void
  /** Whom a user ignores has changed: the user's marks are loaded again. */
  forget(userNid: number): void
  forgetAll(): void
}

export function createUnreadMarks(parts: {
  readonly db: Reader
  readonly budget: ByteBudget
  readonly pushRules: Pick<PushRules, 'of' | 'changedAt'>
  readonly ignoredUsers: Pick<IgnoredUsers, 'of'>
}): UnreadMarks {
  const { db, budget, pushRules, ignoredUsers } = parts
  const byRoom = new Map<number, Map<number, Mark>>()
  const users = budget.part<number, UserMarks>({
    bytesOf: (marks) => MARKS_BYTES + marks.byRoom.size * MARK_BYTES + marks.threads * THREAD_BYTES,
    gone({ byRoom: marks }, userNid) {
      for (const roomNid of marks.keys()) leaveRoom(roomNid, userNid)
    },
  })
  const flights = new Set<Flight>()

  function leaveRoom(roomNid: number, userNid: number): void {
    const marks = byRoom.get(roomNid)
    if (marks?.delete(userNid) && marks.size === 0) byRoom.delete(roomNid)
  }

  function forgetOne(userNid: number, roomNid: number): void {
    const marks = users.get(userNid)?.byRoom
    marks?.get(roomNid)?.countIn(undefined)
    marks?.delete(roomNid)
    leaveRoom(roomNid, userNid)
  }

  function keep(userNid: number, roomNid: number, mark: Mark): void {
    const marks = users.get(userNid) ?? { byRoom: new Map<number, Mark>(), threads: 0 }
    marks.byRoom.get(roomNid)?.countIn(undefined)
    marks.byRoom.set(roomNid, mark)
    mark.countIn(marks)
    const inRoom = byRoom.get(roomNid)
    if (inRoom) inRoom.set(userNid, mark)
    else byRoom.set(roomNid, new Map([[userNid, mark]]))
    // Last, because it may remove all of this again to stay within the budget.
    users.set(userNid, marks)
  }

  function markOf(userNid: number, roomNid: number): Mark | undefined {
    const mark = users.get(userNid)?.byRoom.get(roomNid)
    return mark?.rulesAt === pushRules.changedAt(userNid) ? mark : undefined
  }

  /** @param userNid undefined for all users who are in the room */
  function change(made: Change, userNid?: number): void {
    for (const flight of flights) {
      if (flight.roomNids.has(made.roomNid) && (userNid ?? flight.userNid) === flight.userNid) flight.missed.push(made)
    }
    const inRoom = byRoom.get(made.roomNid)
    if (!inRoom) return
    const concerned = userNid === undefined ? [...inRoom] : [[userNid, inRoom.get(userNid)] as const]
    for (const [nid, mark] of concerned) {
      // A mark may have been read after the commit, and before this process heard of it.
      if (mark && made.pos > mark.upTo && !made.apply(mark, nid)) forgetOne(nid, made.roomNid)
    }
  }

  async function load(userNid: number, roomNids: readonly number[]): Promise<Map<number, Mark>> {
    let left = roomNids
    const found = new Map<number, Mark>()
    for (let loads = 0; left.length > 0 && loads < MAX_LOADS; loads++) {
      const flight: Flight = { userNid, roomNids: new Set(left), missed: [], isVoid: false }
      flights.add(flight)
      try {
        left = await fly(flight, found)
      } finally {
        flights.delete(flight)
      }
    }
    return found
  }

  /** Returns the rooms that must be read again. */
  async function fly(flight: Flight, found: Map<number, Mark>): Promise<number[]> {
    const { userNid } = flight
    const rulesAt = pushRules.changedAt(userNid)
    const ignored = await ignoredUsers.of(userNid)
    const [rules, rows] = await Promise.all([
      pushRules.of(userNid),
      getUnread(db, userNid, [...flight.roomNids], MOST, ignored ? [...ignored] : []),
    ])
    if (flight.isVoid || rulesAt !== pushRules.changedAt(userNid)) return [...flight.roomNids]
    const again: number[] = []
    for (const [roomNid, ofRoom] of groupBy(rows, ({ room_nid }) => room_nid)) {
      const [{ room_id: roomId, up_to: upTo }] = ofRoom as [(typeof ofRoom)[number]]
      const isBased = rules === DEFAULT_PUSH_RULES || rules.inRoom(roomId).countsMessages
      const mark = new Mark(ofRoom, { isBased, rulesAt })
      found.set(roomNid, mark)
      const missed = flight.missed.filter((made) => made.roomNid === roomNid && made.pos > upTo)
      if (missed.every((made) => made.apply(mark, userNid))) keep(userNid, roomNid, mark)
      else again.push(roomNid)
    }
    return again
  }

  return {
    of: markOf,
    load,
    change,
    forget(userNid) {
      for (const flight of flights) if (flight.userNid === userNid) flight.isVoid = true
      users.delete(userNid)
    },
    forgetAll() {
      for (const flight of flights) flight.isVoid = true
      users.clear()
      byRoom.clear()
    },
  }
}
