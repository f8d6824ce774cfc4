import { PUSH_PACE, URGENT_PUSH_PACE } from '../limits/pushers.ts'
import { type Notice, WEIGHT } from './notice.ts'
import { PaceUse } from './pace.ts'

/**
 * The notices of one pusher that wait in memory, in the order of the stream, and the pace at which they go. When more wait than may go now,
 * the newest ones of each room stand for those before them that matter no more. So a flood becomes few notifications, each mention still is
 * one of its own, and the last event of each room is always told of.
 */
export class NoticeLine {
  #notices: Notice[] = []
  /** From which position on a notice stands for others that were left out. */
  readonly #standsFrom = new Map<Notice, number>()
  /** So many at the front are to go as they are. Otherwise a room that is never quiet could keep another waiting. */
  #chosen = 0
  #urgent = 0
  readonly #pace = new PaceUse(PUSH_PACE)
  readonly #urgentPace = new PaceUse(URGENT_PUSH_PACE)

  get length(): number {
    return this.#notices.length
  }

  get first(): Notice | undefined {
    return this.#notices[0]
  }

  /** Whether anything that waits is urgent. */
  get isUrgent(): boolean {
    return this.#urgent > 0
  }

  /** The lowest position of all that wait, and of all that they stand for. */
  get from(): number | undefined {
    const [first] = this.#notices
    if (!first) return undefined
    let from = first.position
    for (const position of this.#standsFrom.values()) from = Math.min(from, position)
    return from
  }

  /** When the first one may go. If something urgent waits, its pace counts for those before it too. */
  dueAt(now: number): number | undefined {
    if (this.#notices.length === 0) return undefined
    const next = this.#pace.nextAt(now)
    return this.#urgent === 0 ? next : Math.min(next, this.#urgentPace.nextAt(now))
  }

  /** Takes the next notice of the stream. */
  push(notice: Notice): void {
    this.#notices.push(notice)
    if (notice.weight === WEIGHT.urgent) this.#urgent += 1
  }

  /**
   * The first one may go now. Leaves out what the pace leaves no room for, unless all are to go, and gives how many that were. What stays
   * goes as it is.
   */
  choose(now: number, areAllToGo = false): number {
    const leftOut = areAllToGo ? 0 : this.shorten(now)
    this.#chosen = leftOut > 0 ? this.#notices.length : Math.max(1, this.#chosen)
    return leftOut
  }

  /** What was chosen did not go. */
  unchoose(): void {
    this.#chosen = 0
  }

  /** The first one goes. */
  take(now: number): void {
    const isUrgent = this.first?.weight === WEIGHT.urgent
    const isFree = this.#pace.free(now) > 0
    if (isFree) this.#pace.take(now)
    if ((isUrgent || !isFree) && this.#urgentPace.free(now) > 0) this.#urgentPace.take(now)
  }

  /** The first one is done with. */
  drop(): void {
    const first = this.#notices.shift()
    if (!first) return
    this.#standsFrom.delete(first)
    this.#chosen = Math.max(0, this.#chosen - 1)
    if (first.weight === WEIGHT.urgent) this.#urgent -= 1
  }

  /** Gives how many there were. */
  clear(): number {
    const count = this.#notices.length
    this.#notices = []
    this.#standsFrom.clear()
    this.#chosen = 0
    this.#urgent = 0
    return count
  }

  /** From which position on a notice stands for others; undefined if it stands for itself alone. */
  standsFrom(notice: Notice): number | undefined {
    return this.#standsFrom.get(notice)
  }

  /** The first one is not to be told of any more: these come in its place, of those that it stood for. @param from where these begin */
  replaceFirst(notices: readonly Notice[], from: number): void {
    this.drop()
    this.#chosen = 0
    this.#notices.unshift(...notices)
    let next = from
    for (const notice of notices) {
      if (next < notice.position) this.#standsFrom.set(notice, next)
      if (notice.weight === WEIGHT.urgent) this.#urgent += 1
      next = notice.position + 1
    }
  }

  /**
   * Leaves out the oldest for which the next one of their room stands, as many as are over the pace. Gives how many that were. So what a
   * notice stands for is all that came in its room since a position.
   */
  shorten(now: number): number {
    const before = this.#notices.length
    const most = Math.max(1, this.#pace.free(now))
    const mostUrgent = Math.max(1, this.#urgentPace.free(now))
    for (let length = 0; this.#notices.length > most && this.#notices.length !== length; ) {
      length = this.#notices.length
      this.#shortenOnce(length - most, this.#urgent - mostUrgent)
    }
    return before - this.#notices.length
  }

  #shortenOnce(over: number, urgentOver: number): void {
    const nexts = nextsOf(this.#notices)
    this.#notices = this.#notices.filter((notice, index) => {
      const next = nexts[index]
      const isUrgent = notice.weight === WEIGHT.urgent
      if (over <= 0 || (isUrgent && urgentOver <= 0) || index < this.#chosen) return true
      if (next === undefined || next.weight < notice.weight) return true
      this.#replace(notice, next)
      over -= 1
      if (isUrgent) urgentOver -= 1
      return false
    })
  }

  #replace(notice: Notice, standIn: Notice): void {
    const from = this.#standsFrom.get(notice) ?? notice.position
    this.#standsFrom.delete(notice)
    this.#standsFrom.set(standIn, Math.min(from, this.#standsFrom.get(standIn) ?? from))
    if (notice.weight === WEIGHT.urgent) this.#urgent -= 1
  }
}

/** For each notice the next one of its room. */
function nextsOf(notices: readonly Notice[]): (Notice | undefined)[] {
  const found: (Notice | undefined)[] = new Array(notices.length)
  const byRoom = new Map<number, Notice>()
  for (let index = notices.length - 1; index >= 0; index--) {
    const notice = notices[index]!
    found[index] = byRoom.get(notice.roomNid)
    byRoom.set(notice.roomNid, notice)
  }
  return found
}
