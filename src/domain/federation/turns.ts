/** Tries at servers of which it is doubtful that they answer: so many at a time, one after another, in the order in which they came. */
export class Turns {
  readonly #waiting = new Set<() => Promise<void>>()
  readonly #everyMs: number
  #free: number
  #timer: NodeJS.Timeout | undefined

  /** @param everyMs from the beginning of one to that of the next */
  constructor(atOnce: number, everyMs = 0) {
    this.#free = atOnce
    this.#everyMs = everyMs
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
