/** A queue of attempts to reach servers that may be unreachable. So many run at a time, in the order in which they came. */
export class Turns {
  readonly #waiting = new Set<() => Promise<void>>()
  readonly #everyMs: number
  #free: number
  #timer: NodeJS.Timeout | undefined

  /** @param everyMs the shortest time between the starts of two attempts */
  constructor(atOnce: number, everyMs = 0) {
    this.#free = atOnce
    this.#everyMs = everyMs
  }

  /** Queues an attempt, unless it is queued already. */
  add(attempt: () => Promise<void>): void {
    this.#waiting.add(attempt)
    this.#next()
  }

  /** Removes an attempt from the queue. */
  drop(attempt: () => Promise<void>): void {
    this.#waiting.delete(attempt)
  }

  #next(): void {
    const [attempt] = this.#waiting
    if (attempt === undefined || this.#free === 0 || this.#timer !== undefined) return
    this.#waiting.delete(attempt)
    this.#free--
    if (this.#everyMs > 0) this.#timer = setTimeout(() => this.#passed(), this.#everyMs).unref()
    void attempt().finally(() => {
      this.#free++
      this.#next()
    })
  }

  #passed(): void {
    this.#timer = undefined
    this.#next()
  }
}
