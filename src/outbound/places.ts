import { failureOf } from './failures.ts'

/** What a server is asked at once that has not answered yet, or did not when it was asked last. */
const UNPROVEN_AT_ONCE = 2
/** What the next question would come to as well. */
const IN_VAIN: ReadonlySet<string> = new Set(['dns', 'connect', 'tls', 'timeout'])

interface Waiting {
  enter(): void
  leave(error: unknown): void
}

/**
 * How much one server is asked at once. Who has answered is asked whatever there is to be asked. To who has not, each question would be
 * one more connection, with its handshake, that hangs: two are enough to find out, and what waits behind them comes to what they do.
 */
export class Places {
  readonly #waiting = new Set<Waiting>()
  #taken = 0
  #isProven = false

  /** Resolves when the question may be asked. Throws what came of the one before where that tells enough, and when it is given up. */
  async enter(signal: AbortSignal): Promise<void> {
    if (this.#isFree) this.#taken++
    else await new Promise<void>((enter, leave) => this.#waiting.add({ enter, leave }))
    if (!signal.aborted) return
    this.#passOn()
    throw signal.reason
  }

  /** The answer was read to its end. */
  answered(): void {
    this.#isProven = true
    this.#passOn()
  }

  /** @param error nothing, where the answer was left early */
  failed(error: unknown): void {
    if (error instanceof Error && IN_VAIN.has(failureOf(error).kind)) {
      this.#isProven = false
      for (const { leave } of this.#waiting) leave(error)
      this.#waiting.clear()
    }
    this.#passOn()
  }

  get #isFree(): boolean {
    return this.#isProven || this.#taken < UNPROVEN_AT_ONCE
  }

  #passOn(): void {
    this.#taken--
    for (const one of this.#waiting) {
      if (!this.#isFree) return
      this.#waiting.delete(one)
      this.#taken++
      one.enter()
    }
  }
}
