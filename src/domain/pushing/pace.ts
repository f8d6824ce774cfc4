/** A burst at once, and then one each time that this has passed. */
export interface Pace {
  readonly burst: number
  readonly everyMs: number
}

/** How much of a pace is used up. It needs no timer: one number says when the whole burst is there again. */
export class PaceUse {
  readonly #pace: Pace
  #wholeAt = 0
  /** When the last one went, or when the last loss was made up for. */
  #settledAt = 0

  constructor(pace: Pace) {
    this.#pace = pace
  }

  /** How many may go at this time, in milliseconds. */
  free(now: number): number {
    const { burst, everyMs } = this.#pace
    return burst - Math.ceil(this.#missingMs(now) / everyMs)
  }

  /** When the next one may go. */
  nextAt(now: number): number {
    const { burst, everyMs } = this.#pace
    return now + Math.max(0, this.#missingMs(now) - (burst - 1) * everyMs)
  }

  /** One goes. It may go only if one is free. */
  take(now: number): void {
    this.#wholeAt = now + this.#missingMs(now) + this.#pace.everyMs
    this.#settledAt = now
  }

  /**
   * What waits since a time is about to go. If its turn was held up for as long as the pace leaves between two, nothing is saved up by that:
   * whoever cannot keep up with the pace would be sent all that is free, and so hear of the newest the later.
   */
  heldUp(since: number, now: number): void {
    const { burst, everyMs } = this.#pace
    const mightGoAt = Math.max(since, this.#settledAt, this.#wholeAt - (burst - 1) * everyMs)
    const lostMs = now - mightGoAt
    if (lostMs < everyMs || this.#wholeAt <= mightGoAt) return
    this.#wholeAt += lostMs
    this.#settledAt = now
  }

  #missingMs(now: number): number {
    const missing = this.#wholeAt - now
    // More than a burst is missing only if the clock was moved back.
    return missing < 0 || missing > this.#pace.burst * this.#pace.everyMs ? 0 : missing
  }
}
