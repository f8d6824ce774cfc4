import { PUSH_PACE, URGENT_PUSH_PACE } from '../limits/pushers.ts'
import { type Notice, WEIGHT } from './notice.ts'
import { PaceUse } from './pace.ts'

interface Entry {
  notice: Notice
  /** From which position on it stands for others that were left out; its own if it stands for itself alone. */
  from: number
  /** When the first of those was found that wait in its place. */
  readonly since: number
}

const entryOf = (notice: Notice): Entry => ({ notice, from: notice.position, since: notice.at })

/**
 * The notices of one pusher that wait in memory, in the order of the stream, and the pace at which they go. When more wait than may go now,
 * the newest ones of each room stand for those before them that matter no more. So a flood becomes few notifications, each mention still is
 * one of its own, and the last event of each room is always told of.
 */
export class NoticeLine {
  #entries: Entry[] = []
  /** So many at the front keep their turn before what comes after. Otherwise a room that is never quiet could keep another waiting. */
  #chosen = 0
  /** Whether one took the place of another since the last choice, and so that one was left out. */
  #isRenewed = false
  /** Whether anything was left out at the last choice: more comes than the pace leaves room for. */
  #isOver = false
  #urgent = 0
  readonly #pace = new PaceUse(PUSH_PACE)
  readonly #urgentPace = new PaceUse(URGENT_PUSH_PACE)

  get length(): number {
    return this.#entries.length
  }

  get first(): Notice | undefined {
    return this.#entries[0]?.notice
  }

  /** When the first one was found, or what waited in its place before. */
  get waitsSince(): number | undefined {
    return this.#entries[0]?.since
  }

  /** The rooms of all that wait. */
  get roomNids(): number[] {
    return this.#entries.map(({ notice }) => notice.roomNid)
  }

  /** Whether anything that waits is urgent. */
  get isUrgent(): boolean {
    return this.#urgent > 0
  }

  /** The lowest position of all that wait, and of all that they stand for. */
  get from(): number | undefined {
    const [first] = this.#entries
    if (!first) return undefined
    let lowest = first.from
    for (const { from } of this.#entries) lowest = Math.min(lowest, from)
    return lowest
  }

  /** When the first one may go. If something urgent waits, its pace counts for those before it too. */
  dueAt(now: number): number | undefined {
    if (this.#entries.length === 0) return undefined
    const next = this.#pace.nextAt(now)
    return this.#urgent === 0 ? next : Math.min(next, this.#urgentPace.nextAt(now))
  }

  /** Takes the next notice of the stream. */
  push(notice: Notice): void {
    this.#entries.push(entryOf(notice))
    if (notice.weight === WEIGHT.urgent) this.#urgent += 1
  }

  /**
   * Takes the next notice of the stream in the place of the last one, if nothing may go now and that one would be left out for it when
   * something may. So a flood costs each pusher next to nothing until it is its turn.
   * @returns false if it did not
   */
  renewLast(notice: Notice, now: number): boolean {
    const last = this.#entries.length > this.#chosen ? this.#entries[this.#entries.length - 1] : undefined
    if (last === undefined || last.notice.roomNid !== notice.roomNid) return false
    if (notice.weight === WEIGHT.urgent || notice.weight < last.notice.weight) return false
    if (this.#pace.free(now) > 0) return false
    last.notice = notice
    this.#isRenewed = true
    return true
  }

  /**
   * The first one may go now. Leaves out what the pace leaves no room for, unless all are to go, and gives how many that were. What stays
   * keeps its turn.
   */
  choose(now: number, areAllToGo = false): number {
    if (areAllToGo) {
      this.#chosen = Math.max(1, this.#chosen)
      return 0
    }
    if (this.#isOver) this.#wereHeldUp(now)
    const leftOut = this.#leaveOut(now, true)
    this.#isOver = leftOut > 0 || this.#isRenewed
    this.#chosen = this.#isOver ? this.#entries.length : Math.max(1, this.#chosen)
    this.#isRenewed = false
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
    const first = this.#entries.shift()
    if (!first) return
    this.#chosen = Math.max(0, this.#chosen - 1)
    if (first.notice.weight === WEIGHT.urgent) this.#urgent -= 1
  }

  /** Gives how many there were. */
  clear(): number {
    const count = this.#entries.length
    this.#entries = []
    this.#chosen = 0
    this.#urgent = 0
    return count
  }

  /** From which position on a notice stands for others; undefined if it stands for itself alone. */
  standsFrom(notice: Notice): number | undefined {
    const from = this.#entries.find((one) => one.notice === notice)?.from
    return from === notice.position ? undefined : from
  }

  /** The first one is not to be told of any more: these come in its place, of those that it stood for. @param from where these begin */
  replaceFirst(notices: readonly Notice[], from: number): void {
    this.drop()
    this.#chosen = 0
    const entries = notices.map(entryOf)
    this.#entries.unshift(...entries)
    let next = from
    for (const entry of entries) {
      const { position, weight } = entry.notice
      entry.from = Math.min(next, position)
      if (weight === WEIGHT.urgent) this.#urgent += 1
      next = position + 1
    }
  }

  /**
   * Leaves out the oldest for which the next one of their room stands, as many as are over the pace, but for those that were chosen. Gives
   * how many that were. So what a notice stands for is all that came in its room since a position.
   */
  shorten(now: number): number {
    return this.#leaveOut(now, false)
  }

  /** @param fromChosen also what was chosen before, where that keeps nothing of another room waiting */
  #leaveOut(now: number, fromChosen: boolean): number {
    const before = this.#entries.length
    if (before === 1) return 0
    const most = Math.max(1, this.#pace.free(now))
    const mostUrgent = Math.max(1, this.#urgentPace.free(now))
    // Of what was chosen, some once nothing else can be left out.
    for (let isOfChosen = false, length = before; length > most; length = this.#entries.length) {
      this.#leaveOutOnce({ over: length - most, urgentOver: this.#urgent - mostUrgent }, isOfChosen)
      if (this.#entries.length < length) isOfChosen = false
      else if (isOfChosen || !fromChosen) break
      else isOfChosen = true
    }
    return before - this.#entries.length
  }

  #leaveOutOnce({ over, urgentOver }: { over: number; urgentOver: number }, isOfChosen: boolean): void {
    const chosen = this.#chosen
    const nexts = nextsOf(this.#entries)
    this.#entries = this.#entries.filter((entry, index) => {
      const { weight } = entry.notice
      const isUrgent = weight === WEIGHT.urgent
      if (over <= 0 || (isUrgent && urgentOver <= 0)) return true
      const place = nexts[index]!
      const next = this.#entries[place]
      if (next === undefined || next.notice.weight < weight) return true
      if (index < chosen && !(isOfChosen && (place < chosen || place === index + 1))) return true
      next.from = Math.min(next.from, entry.from)
      if (index < chosen) this.#chosen -= 1
      if (isUrgent) this.#urgent -= 1
      over -= 1
      if (isUrgent) urgentOver -= 1
      return false
    })
  }

  #wereHeldUp(now: number): void {
    const [first] = this.#entries
    if (first) this.#pace.heldUp(first.since, now)
    if (this.#urgent === 0) return
    const urgent = this.#entries.find(({ notice }) => notice.weight === WEIGHT.urgent)
    if (urgent) this.#urgentPace.heldUp(urgent.since, now)
  }
}

/** For each entry the place of the next one of its room; that behind the last one if there is none. */
function nextsOf(entries: readonly Entry[]): number[] {
  const found: number[] = new Array(entries.length)
  const byRoom = new Map<number, number>()
  for (let index = entries.length - 1; index >= 0; index--) {
    const { roomNid } = entries[index]!.notice
    found[index] = byRoom.get(roomNid) ?? entries.length
    byRoom.set(roomNid, index)
  }
  return found
}
