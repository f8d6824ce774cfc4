import type { Logger } from 'pino'
import type { GatewayAnswer } from '../../outbound/push-gateway.ts'
import type { PusherProgress, PusherRow } from '../../store/accounts/pushers.ts'
import { pauseAfter } from '../backoff.ts'
import type { Clock, Random } from '../clock.ts'
import {
  CATCHING_UP_MS,
  COUNTS_EVERY_MS,
  MAX_NOTICES_IN_MEMORY,
  MIN_NOTICES_IN_MEMORY,
  OUTAGE_MS,
  PUSH_GIVEN_UP_AFTER_MS,
} from '../limits/pushers.ts'
import type { RoomEvent } from '../rooms/room/room-event.ts'
import { PUSH_PAUSES, type Turn, type Waiting } from './gateways.ts'
import { type Notice, WEIGHT } from './notice.ts'
import { NoticeLine } from './notice-line.ts'
import { type Addressee, addresseeOf, type NotificationBodies } from './notification-body.ts'
import type { PushTarget } from './push-target.ts'

/** What a pusher missed, read from the stream. */
export interface MissedNotices {
  readonly notices: readonly Notice[]
  /** Everything up to this position was examined. */
  readonly upTo: number
  /** There may be more. */
  readonly isFull: boolean
}

export interface PusherQueueParts {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly bodies: NotificationBodies
  /** The event of a notice, if its user has not read it and it is still there; at once if memory tells. */
  wanted(userNid: number, notice: Notice): RoomEvent | undefined | Promise<RoomEvent | undefined>
  /** What the badge of a user shows; at once if memory tells. */
  badge(userNid: number): number | Promise<number>
  /** The user's badge may be another by what came in these rooms. */
  countAgain(userNid: number, roomNids: readonly number[]): void
  notify(url: string, body: string): Promise<GatewayAnswer>
  /** Reads what was missed between two positions, in one room or in all. */
  readMissed(row: PusherRow, after: number, upTo: number, roomNid?: number): Promise<MissedNotices>
  /** Everything up to this position was evaluated, and offered if it notifies the user. */
  evaluated(): number
  /** Whether there is room for one more notice of any pusher. */
  takePlace(): boolean
  freePlaces(count: number): void
  /** It may have something to send. */
  ready(queue: PusherQueue): void
  /** Its progress changed. */
  changed(queue: PusherQueue): void
  /** The gateway rejected its key. */
  rejected(queue: PusherQueue): Promise<void>
}

/**
 * The notifications of one pusher, in the order of the stream. One request is on its way at a time, and repeated until the gateway answers.
 * What does not fit in memory is read again from the stream when it is its turn, as far as it is still unread. At more than its pace, some
 * notices stand for others (`NoticeLine`): a gateway that is back, and a room in which many write, are no storm on a phone.
 */
export class PusherQueue implements Waiting, PushTarget {
  readonly #parts: PusherQueueParts
  #row: PusherRow
  #to: Addressee
  readonly #line = new NoticeLine()
  /** Whether notices after `#readUpTo` must be read from the stream. */
  #lags: boolean
  #readUpTo: number
  /** The last notice that was offered and must be read. */
  #missedTo = 0
  /** Notices that were offered while the stream is being read; undefined if there were too many. */
  #meanwhile: Notice[] | undefined
  #failures: number
  #failingSince: number | undefined
  #retryAt: number
  /** Whether the badge may have changed since it was sent. */
  #wantsCounts = false
  #sentCount: number | undefined
  #sentAt = 0
  /** When it began to catch up after an outage; undefined once it has. */
  #backAt: number | undefined
  #isOver = false
  isPaused = false

  constructor(parts: PusherQueueParts, row: PusherRow, lags: boolean) {
    this.#parts = parts
    this.#row = row
    this.#to = addresseeOf(row)
    this.#lags = lags
    this.#readUpTo = row.position
    this.#failures = row.failures
    this.#failingSince = row.failing_since ?? undefined
    this.#retryAt = row.retry_at
  }

  get row(): PusherRow {
    return this.#row
  }

  get origin(): string {
    return this.#to.origin
  }

  get dueAt(): number | undefined {
    if (this.#isOver || this.isPaused) return undefined
    const now = this.#parts.clock.now()
    // If the clock was moved back, a pause must not last for ever.
    const retryAt = this.#retryAt > now + 2 * PUSH_PAUSES.longestMs ? 0 : this.#retryAt
    const paced = this.#line.dueAt(now)
    if (paced !== undefined) return Math.max(retryAt, paced)
    if (this.#lags) return retryAt
    if (!this.#wantsCounts) return undefined
    return Math.max(retryAt, this.#sentAt > now ? 0 : this.#sentAt + COUNTS_EVERY_MS)
  }

  get waitsSince(): number | undefined {
    return this.#line.waitsSince
  }

  get sentUpTo(): number | undefined {
    if (this.#isOver) return undefined
    const { from } = this.#line
    if (from !== undefined) return from - 1
    return this.#lags ? this.#readUpTo : undefined
  }

  get isBehind(): boolean {
    return this.#lags || this.#failures > 0
  }

  get progress(): PusherProgress {
    return {
      pusher_nid: this.#row.pusher_nid,
      position: this.sentUpTo ?? Math.max(this.#row.position, this.#parts.evaluated()),
      lags: this.sentUpTo !== undefined,
      failures: this.#failures,
      failing_since: this.#failingSince ?? null,
      retry_at: this.#retryAt,
      mailed_at: null,
      pause_ms: 0,
    }
  }

  renew(row: PusherRow): void {
    if (row.set_at !== this.#row.set_at) {
      this.#failures = 0
      this.#failingSince = undefined
      this.#retryAt = 0
    }
    this.#row = row
    this.#to = addresseeOf(row)
    this.isPaused = false
  }

  offer(notice: Notice): boolean {
    if (this.#isOver || notice.position <= this.#readUpTo) return false
    if (this.#lags) {
      this.#missedTo = notice.position
      if (this.#meanwhile && this.#meanwhile.push(notice) > MAX_NOTICES_IN_MEMORY) this.#meanwhile = undefined
      return false
    }
    if (this.#line.length === 0) this.#backAt = undefined
    else if (this.#renewsLast(notice)) return true
    // If something waits, it has its turn already, or will have it when its pace allows.
    const isFirst = this.#line.length === 0 || (notice.weight === WEIGHT.urgent && !this.#line.isUrgent)
    if (this.#hasPlace()) {
      this.#line.push(notice)
      this.#readUpTo = notice.position
    } else {
      this.#lags = true
      this.#readUpTo = notice.position - 1
      this.#missedTo = notice.position
    }
    this.#parts.changed(this)
    if (isFirst) this.wake()
    return false
  }

  /** Whether a notice takes the place of the last one that waits for its turn. What a gateway failed to take is told of one by one. */
  #renewsLast(notice: Notice): boolean {
    const now = this.#parts.clock.now()
    if (this.#isCatchingUp(now) || !this.#line.renewLast(notice, now)) return false
    this.#readUpTo = notice.position
    return true
  }

  wake(): void {
    this.#parts.ready(this)
  }

  badgeChanged(): void {
    if (this.#to.wantsCounts) this.#wantsCounts = true
  }

  end(): void {
    this.#isOver = true
    this.#countAgain()
    this.#parts.freePlaces(this.#line.clear())
    this.#parts.changed(this)
    this.wake()
  }

  async run(): Promise<Turn> {
    try {
      return await this.#sendNext()
    } catch (err) {
      // The database failed.
      const { pusher_nid: pusher } = this.#row
      this.#parts.log.warn({ err, pusher }, 'a notification could not be made; it will be tried again')
      this.#retryAt = this.#parts.clock.now() + PUSH_PAUSES.firstMs
      return 'idle'
    }
  }

  async #sendNext(): Promise<Turn> {
    const { clock } = this.#parts
    while (this.dueAt !== undefined) {
      if (this.#line.length === 0 && this.#lags) await this.#readOn()
      const now = clock.now()
      const dueAt = this.#line.dueAt(now)
      if (dueAt === undefined) {
        if (this.#lags) continue
        return this.#sendCounts()
      }
      if (dueAt > now) return 'idle'
      this.#free(this.#line.choose(now, this.#isCatchingUp(now)))
      const notice = this.#line.first!
      const isTooOld = this.#isTooOld(notice)
      const found = isTooOld ? undefined : this.#parts.wanted(this.#row.user_nid, notice)
      const event = found instanceof Promise ? await found : found
      if (event) return this.#send(notice, event)
      if (isTooOld) {
        this.#countAgain()
        this.#drop(notice)
      } else await this.#skip(notice)
    }
    return 'idle'
  }

  /**
   * What waited for a gateway goes one by one, at the pace: it is still unread. After a while the newest stands for the rest, or a room that
   * is never quiet would be told of late for ever.
   */
  #isCatchingUp(now: number): boolean {
    if (this.#failingSince !== undefined) return true
    if (now - (this.waitsSince ?? now) > OUTAGE_MS) this.#backAt ??= now
    return this.#backAt !== undefined && now - this.#backAt <= CATCHING_UP_MS
  }

  /** A notification that failed for a day is of no use any more. */
  #isTooOld({ at }: Notice): boolean {
    return this.#failingSince !== undefined && this.#parts.clock.now() - at >= PUSH_GIVEN_UP_AFTER_MS
  }

  async #send(notice: Notice, event: RoomEvent): Promise<Turn> {
    const { bodies, badge } = this.#parts
    const to = this.#to
    this.#countAgain()
    const counted = to.wantsCounts ? badge(this.#row.user_nid) : 0
    const unread = counted instanceof Promise ? await counted : counted
    const written = bodies.ofEvent(event, notice.outcome, to, unread)
    const body = written instanceof Promise ? await written : written
    this.#line.take(this.#parts.clock.now())
    const turn = await this.#ask(body, unread)
    if (turn === 'answered' && this.#failures === 0) this.#drop(notice)
    else this.#line.unchoose()
    return turn
  }

  /** What took the place of another as it waited was not counted when it came. */
  #countAgain(): void {
    this.#parts.countAgain(this.#row.user_nid, this.#line.roomNids)
  }

  async #sendCounts(): Promise<Turn> {
    if (!this.#wantsCounts || !this.#to.wantsCounts) return 'idle'
    this.#wantsCounts = false
    let isSent = false
    try {
      const unread = await this.#parts.badge(this.#row.user_nid)
      isSent = unread === this.#sentCount
      if (isSent) return 'idle'
      const turn = await this.#ask(this.#parts.bodies.ofCounts(this.#to, unread), unread)
      isSent = turn === 'answered' && this.#failures === 0
      return turn
    } finally {
      if (!isSent) this.#wantsCounts = true
    }
  }

  async #ask(body: string, unread: number): Promise<Turn> {
    // The pusher may have ended while the body was made.
    if (this.#isOver || this.isPaused) return 'idle'
    const { clock, random, log } = this.#parts
    const answer = await this.#parts.notify(this.#to.url, body)
    this.#sentAt = clock.now()
    if (answer.kind === 'taken') {
      if (answer.rejected.includes(this.#row.pushkey)) await this.#parts.rejected(this)
      this.#sentCount = unread
      if (this.#failingSince !== undefined) this.#backAt ??= this.#sentAt
      this.#failures = 0
      this.#failingSince = undefined
      this.#retryAt = 0
      this.#parts.changed(this)
      return 'answered'
    }
    this.#failingSince ??= clock.now()
    const { pusher_nid: pusher } = this.#row
    log.debug({ pusher, gateway: this.origin, answer }, 'a push gateway did not take a notification')
    if (answer.kind === 'refused') {
      this.#failures += 1
      this.#retryAt = clock.now() + pauseAfter(this.#failures, PUSH_PAUSES, random)
    }
    this.#parts.changed(this)
    // Another pause than that of one pusher is up to the gateway.
    return answer.kind === 'refused' ? 'answered' : 'unanswered'
  }

  /** A notice is done with, unless the pusher ended meanwhile. */
  #drop(notice: Notice): void {
    if (this.#line.first !== notice) return
    this.#line.drop()
    this.#free(1)
  }

  #free(count: number): void {
    if (count === 0) return
    this.#parts.freePlaces(count)
    this.#parts.changed(this)
  }

  /** Whether there is a place for one more, which it then takes. */
  #hasPlace(): boolean {
    if (this.#line.length < MAX_NOTICES_IN_MEMORY && this.#parts.takePlace()) return true
    const now = this.#parts.clock.now()
    if (this.#isCatchingUp(now)) return false
    const leftOut = this.#line.shorten(now)
    this.#free(leftOut)
    return leftOut > 0 && this.#parts.takePlace()
  }

  /** Its event was read or is gone. Of what it stood for, something may still be unread. */
  async #skip(notice: Notice): Promise<void> {
    const from = this.#line.standsFrom(notice)
    if (from === undefined) return this.#drop(notice)
    const newest = await this.#newestWanted(notice, from)
    if (this.#line.first !== notice) return
    this.#free(1)
    for (let count = newest.length; count > 0; count--) this.#parts.takePlace()
    this.#line.replaceFirst(newest, from)
  }

  /** Of what a notice stood for, the newest of each weight that is still wanted; in order. */
  async #newestWanted({ roomNid, position, weight }: Notice, from: number): Promise<Notice[]> {
    const found = new Map<number, Notice>()
    let after = from - 1
    for (let isFull = true; isFull; ) {
      const page = await this.#parts.readMissed(this.#row, after, position - 1, roomNid)
      for (const one of page.notices) {
        if (one.roomNid !== roomNid || one.weight > weight) continue
        if (await this.#parts.wanted(this.#row.user_nid, one)) found.set(one.weight, one)
      }
      after = page.upTo
      isFull = page.isFull
    }
    return [...found.values()].sort((a, b) => a.position - b.position)
  }

  /** Reads a page of what was missed. What was offered meanwhile follows the last page, or a busy stream would never be caught up with. */
  async #readOn(): Promise<void> {
    this.#meanwhile = []
    // Everything before an offered notice was evaluated too.
    const target = Math.max(this.#parts.evaluated(), this.#missedTo)
    const { notices, upTo, isFull } = await this.#parts.readMissed(this.#row, this.#readUpTo, target)
    const offered = this.#meanwhile
    this.#meanwhile = undefined
    const isAll = this.#takeRead(notices)
    if (isAll) this.#readUpTo = Math.max(this.#readUpTo, isFull ? upTo : target)
    if (isAll && !isFull && offered !== undefined) {
      this.#lags = false
      for (const notice of offered) this.offer(notice)
    }
    this.#parts.changed(this)
  }

  /** Queues as many as there are places for, and at least a few. False if some are left, which will be read again. */
  #takeRead(notices: readonly Notice[]): boolean {
    for (const notice of notices) {
      if (!this.#hasPlace() && this.#line.length >= MIN_NOTICES_IN_MEMORY) return false
      this.#line.push(notice)
      this.#readUpTo = notice.position
    }
    return true
  }
}
