/** Tries at servers of which it is doubtful that they answer: so many at a time, in the order in which they came. */
export class Turns {
  readonly #waiting = new Set<() => Promise<void>>()
  #free: number

  constructor(atOnce: number) {
    this.#free = atOnce
  }

  /** Has its turn sooner or later; once, however often it is asked for before that. */
  add(attempt: () => Promise<void>): void {
    this.#waiting.add(attempt)
    this.#next()
  }

  /** Wants no turn any more. */
  drop(attempt: () => Promise<void>): void {
    this.#waiting.delete(attempt)
  }

  #next(): void {
    const [attempt] = this.#waiting
    if (attempt === undefined || this.#free === 0) return
    this.#waiting.delete(attempt)
    this.#free--
    void attempt().finally(() => {
      this.#free++
      this.#next()
    })
  }
}
