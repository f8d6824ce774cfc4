import type { Logger } from 'pino'
import type { PusherProgress, PusherRow } from '../../store/accounts/pushers.ts'
import { pauseAfter } from '../backoff.ts'
import type { Clock, Random } from '../clock.ts'
import { FIRST_MAIL_PAUSE_MS, LONGEST_MAIL_PAUSE_MS, MAIL_AFTER_MS, MAIL_GIVEN_UP_AFTER_MS } from '../limits/mails.ts'
import type { Notice } from './notice.ts'
import type { PushTarget } from './push-target.ts'

export interface MailQueueParts {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Everything up to this position was evaluated. */
  evaluated(): number
  /** Its progress changed. */
  changed(queue: MailQueue): void
  /** It has something to do at `dueAt`. */
  waits(queue: MailQueue): void
  /**
   * Mails what is still unread after a position, and says whether there was anything.
   * @throws if the mail could not be sent
   */
  send(row: PusherRow, after: number, upTo: number): Promise<boolean>
}

const PAUSES = { firstMs: 60_000, longestMs: 3_600_000 }

/** The mails of one pusher. It holds no notices: when a mail is due, what is unread is read from the events. */
export class MailQueue implements PushTarget {
  readonly #parts: MailQueueParts
  #row: PusherRow
  /** Everything up to this position was mailed, or needs not be. */
  #position: number
  /** When the next mail is due; undefined if nothing waits. */
  #dueAt: number | undefined
  #mailedAt: number | undefined
  #pauseMs: number
  #failures: number
  #failingSince: number | undefined
  #isOver = false
  isPaused = false

  constructor(parts: MailQueueParts, row: PusherRow, lags: boolean) {
    this.#parts = parts
    this.#row = row
    this.#position = row.position
    this.#mailedAt = row.mailed_at ?? undefined
    this.#pauseMs = row.pause_ms
    this.#failures = row.failures
    this.#failingSince = row.failing_since ?? undefined
    if (lags) this.#dueAt = row.retry_at > 0 ? row.retry_at : this.#soonest
  }

  get row(): PusherRow {
    return this.#row
  }

  get dueAt(): number | undefined {
    if (this.#isOver || this.isPaused || this.#dueAt === undefined) return undefined
    // If the clock was moved back, a pause must not last for ever.
    return this.#dueAt > this.#parts.clock.now() + 2 * LONGEST_MAIL_PAUSE_MS ? 0 : this.#dueAt
  }

  get sentUpTo(): number | undefined {
    return this.#isOver || this.#dueAt === undefined ? undefined : this.#position
  }

  get isBehind(): boolean {
    return this.#dueAt !== undefined
  }

  readonly waitsSince = undefined

  get progress(): PusherProgress {
    return {
      pusher_nid: this.#row.pusher_nid,
      position: this.sentUpTo ?? Math.max(this.#position, this.#parts.evaluated()),
      lags: this.sentUpTo !== undefined,
      failures: this.#failures,
      failing_since: this.#failingSince ?? null,
      retry_at: this.#dueAt ?? 0,
      mailed_at: this.#mailedAt ?? null,
      pause_ms: this.#pauseMs,
    }
  }

  renew(row: PusherRow): void {
    this.#row = row
    this.isPaused = false
  }

  end(): void {
    this.#isOver = true
    this.#parts.changed(this)
  }

  wake(): void {
    if (this.dueAt !== undefined) this.#parts.waits(this)
  }

  offer(notice: Notice): boolean {
    if (this.#dueAt !== undefined || notice.position <= this.#position) return false
    this.#position = notice.position - 1
    this.#dueAt = this.#soonest
    this.#parts.changed(this)
    this.wake()
    return false
  }

  /** Whoever reads needs no mail now, and may get one sooner later. */
  badgeChanged(hasRead: boolean): void {
    if (!hasRead) return
    this.#pauseMs = 0
    if (this.#dueAt === undefined || this.#failures > 0) return
    this.#dueAt = this.#soonest
    this.#parts.changed(this)
  }

  get #soonest(): number {
    const next = this.#mailedAt === undefined ? 0 : this.#mailedAt + this.#pauseMs
    return Math.max(this.#parts.clock.now() + MAIL_AFTER_MS, next)
  }

  /** Sends the mail that is due. Never throws. */
  async run(): Promise<void> {
    const { clock, random, log } = this.#parts
    if (this.dueAt === undefined) return
    const upTo = this.#parts.evaluated()
    try {
      if (await this.#parts.send(this.#row, this.#position, upTo)) {
        this.#mailedAt = clock.now()
        this.#pauseMs = Math.min(LONGEST_MAIL_PAUSE_MS, Math.max(FIRST_MAIL_PAUSE_MS, 2 * this.#pauseMs))
      }
      this.#done(upTo)
    } catch (err) {
      this.#failures += 1
      this.#failingSince ??= clock.now()
      log.warn({ err, pusher: this.#row.pusher_nid }, 'a mail about unread messages could not be sent')
      if (clock.now() - this.#failingSince >= MAIL_GIVEN_UP_AFTER_MS) this.#done(upTo)
      else this.#dueAt = clock.now() + pauseAfter(this.#failures, PAUSES, random)
    }
    this.#parts.changed(this)
  }

  #done(upTo: number): void {
    this.#position = Math.max(this.#position, upTo)
    this.#dueAt = undefined
    this.#failures = 0
    this.#failingSince = undefined
  }
}
