import type { UnreadRow } from '../../store/events/unread.ts'
import { MAX_UNREAD_THREADS } from '../limits/unread.ts'
import { MAIN_THREAD } from '../rooms/room/threads.ts'

export interface UnreadCounts {
  readonly notification_count: number
  readonly highlight_count: number
}

/** What is unread in a room: in the main timeline, and in each thread where anything is. */
export interface RoomUnread {
  readonly main: UnreadCounts
  readonly threads: ReadonlyMap<string, UnreadCounts>
}

/** An event that counts in a thread, or that is something else to the user than to all. */
export interface Arrival {
  readonly pos: number
  /** '' for the main timeline. */
  readonly rootId: string
  /** Whether it counts for all who have the default rules. */
  readonly counts: boolean
  /** What it is to this user, if that is something else. */
  readonly noticed?: { readonly notifies: boolean; readonly highlights: boolean } | undefined
}

/** What is unread in one timeline. All positions are of the room's timeline. */
interface Tally {
  /** Up to where the user has read. */
  from: number
  /** After this, events count. */
  base: number
  /** Thread: how many events count. Main timeline: how many of them were redacted. */
  count: number
  /** The last of those. */
  last: number
  /** How many events are kept for the user alone, and the last. */
  own: number
  ownLast: number
  /** What they add to the count. */
  extra: number
  highlights: number
}

const emptyAt = (pos: number): Tally => ({
  from: pos,
  base: pos,
  count: 0,
  last: 0,
  own: 0,
  ownLast: 0,
  extra: 0,
  highlights: 0,
})

/** Counts the threads in all marks of a user. */
export interface ThreadTotal {
  threads: number
}

/**
 * How far a user has read a room, and what came after that. Changes that cannot be followed from memory alone give false: then the mark is
 * loaded again.
 */
export class Mark {
  /** The ledger position of the rules that it was made by. */
  readonly rulesAt: number
  /** The room's newest position when it was read from the database: it knows of everything up to there. */
  readonly upTo: number
  /** Whether the room's own count is the basis of the user's. If not, messages notify only where that is kept for the user. */
  readonly #isBased: boolean
  readonly #main: Tally
  /** The room's count of notifiable events at the base of the main timeline. */
  #notifiable: number
  /** Undefined for most rooms: no thread is unread. */
  #threads: Map<string, Tally> | undefined
  #total: ThreadTotal | undefined

  /** @param rows of this room, one of them of the main timeline */
  constructor(rows: readonly UnreadRow[], rules: { readonly isBased: boolean; readonly rulesAt: number }) {
    this.rulesAt = rules.rulesAt
    this.#isBased = rules.isBased
    const main = rows.find(({ root_id }) => root_id === '')!
    this.#main = this.#read(main)
    this.#notifiable = main.notifiable
    this.upTo = main.up_to
    const threads = rows.filter(({ root_id, tally, own }) => root_id !== '' && tally + own > 0)
    if (threads.length === 0) return
    threads.sort((a, b) => newest(a) - newest(b))
    this.#threads = new Map(threads.map((row) => [row.root_id, this.#read(row)]))
  }

  #read(row: UnreadRow): Tally {
    return {
      from: row.from_pos,
      base: row.base_pos,
      count: row.tally,
      last: row.last_pos,
      own: row.own,
      ownLast: row.own_last,
      extra: row.own_notifies - (this.#isBased ? row.own_counts : 0),
      highlights: row.own_highlights,
    }
  }

  /** Counts its threads in a total, or, without one, no longer. */
  countIn(total: ThreadTotal | undefined): void {
    const size = this.#threads?.size ?? 0
    if (this.#total) this.#total.threads -= size
    if (total) total.threads += size
    this.#total = total
  }

  /** @param notifiable the room's count of notifiable events now */
  counts(notifiable: number): RoomUnread {
    const redacted = this.#main.count
    const main = this.#countOf(this.#main, notifiable - this.#notifiable - redacted)
    if (!this.#threads) return { main, threads: NO_THREADS }
    const threads = new Map<string, UnreadCounts>()
    for (const [rootId, tally] of this.#threads) {
      const counts = this.#countOf(tally, tally.count)
      if (counts.notification_count + counts.highlight_count > 0) threads.set(rootId, counts)
    }
    return { main, threads }
  }

  #countOf({ extra, highlights }: Tally, count: number): UnreadCounts {
    const basis = this.#isBased ? Math.max(0, count) : 0
    return { notification_count: Math.max(0, basis + extra), highlight_count: highlights }
  }

  /** After which positions something may be unread: in the main timeline, and in any thread. */
  get beginnings(): { readonly main: number; readonly threads: number } {
    const main = this.#main.from
    let threads = main
    for (const { from } of this.#threads?.values() ?? []) threads = Math.min(threads, from)
    return { main, threads }
  }

  /** @param rootId the thread of what is at a position; '' for the main timeline */
  hasRead(pos: number, rootId: string): boolean {
    if (rootId === '') return pos <= this.#main.from
    const thread = this.#threads?.get(rootId)
    return thread === undefined || pos <= thread.from
  }

  /**
   * The user has read up to an event. @param threadId the root of a thread, `main`, or '' for all
   */
  read({ pos, notifiable }: { readonly pos: number; readonly notifiable: number }, threadId: string): boolean {
    const isOfMain = threadId === '' || threadId === MAIN_THREAD
    if (isOfMain && pos > this.#main.from) {
      if (reachesBeyond(this.#main, pos) || pos < this.#main.base) return false
      Object.assign(this.#main, emptyAt(pos))
      this.#notifiable = notifiable
    }
    if (threadId === MAIN_THREAD || !this.#threads) return true
    for (const [rootId, thread] of this.#threads) {
      if ((threadId !== '' && threadId !== rootId) || pos <= thread.from) continue
      if (reachesBeyond(thread, pos)) return false
      this.#threads.delete(rootId)
      if (this.#total) this.#total.threads--
    }
    if (this.#threads.size === 0) this.#threads = undefined
    return true
  }

  /** An event of somebody else. */
  arrived({ pos, rootId, counts, noticed }: Arrival): void {
    const tally = rootId === '' ? this.#main : this.#thread(rootId, pos)
    if (rootId !== '' && counts) {
      tally.count++
      tally.last = pos
    }
    if (!noticed) return
    tally.own++
    tally.ownLast = pos
    tally.extra += (noticed.notifies ? 1 : 0) - (this.#isBased && counts ? 1 : 0)
    tally.highlights += noticed.highlights ? 1 : 0
  }

  /** The thread that was active last comes last. */
  #thread(rootId: string, pos: number): Tally {
    const threads = this.#threads ?? new Map<string, Tally>()
    this.#threads = threads
    const size = threads.size
    const thread = threads.get(rootId) ?? emptyAt(pos - 1)
    threads.delete(rootId)
    if (threads.size >= MAX_UNREAD_THREADS) threads.delete(threads.keys().next().value!)
    threads.set(rootId, thread)
    if (this.#total) this.#total.threads += threads.size - size
    return thread
  }

  /** An event of the main timeline was redacted. */
  redacted(pos: number, counted: boolean): boolean {
    const main = this.#main
    if (main.own > 0 && pos > main.from && pos <= main.ownLast) return false
    if (counted && pos > main.base) {
      main.count++
      main.last = Math.max(main.last, pos)
    }
    return true
  }
}

const NO_THREADS: ReadonlyMap<string, UnreadCounts> = new Map()

const newest = ({ last_pos, own_last }: UnreadRow): number => Math.max(last_pos, own_last)

const reachesBeyond = ({ count, last, own, ownLast }: Tally, pos: number): boolean =>
  (count > 0 && last > pos) || (own > 0 && ownLast > pos)

/** The counts of a room with its threads. */
export function totalOf({ main, threads }: RoomUnread): UnreadCounts {
  if (threads.size === 0) return main
  let { notification_count, highlight_count } = main
  for (const thread of threads.values()) {
    notification_count += thread.notification_count
    highlight_count += thread.highlight_count
  }
  return { notification_count, highlight_count }
}
