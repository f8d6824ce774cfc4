/** A burst at once, and then one each time that this has passed. */
export interface Pace {
  readonly burst: number
  readonly everyMs: number
}

/** How much of a pace is used up. It needs no timer: one number says when the whole burst is there again. */
export class PaceUse {
  readonly #pace: Pace
  #wholeAt = 0

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
  }

  #missingMs(now: number): number {
    const missing = this.#wholeAt - now
    // More than a burst is missing only if the clock was moved back.
    return missing < 0 || missing > this.#pace.burst * this.#pace.everyMs ? 0 : missing
  }
}
