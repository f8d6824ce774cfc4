import { failureOf } from './failures.ts'

/** Parallel requests to a server that has not answered yet, or failed the last time. */
const UNPROVEN_AT_ONCE = 2
/** Failures that the next request would have too. */
const IN_VAIN: ReadonlySet<string> = new Set(['dns', 'connect', 'tls', 'timeout'])

interface Waiting {
  enter(): void
  leave(error: unknown): void
}

/**
 * Limits parallel requests to one server. A server that has answered gets any number. For a server that has not, each request would be one
 * more hanging connection: two are enough to find out, and the requests that wait behind them fail with them.
 */
export class Places {
  readonly #waiting = new Set<Waiting>()
  #taken = 0
  #isProven = false

  /** Resolves when the request may be sent. Throws if the request before it failed in a way that this one would too, or on abort. */
  async enter(signal: Pick<AbortSignal, 'aborted' | 'reason'>): Promise<void> {
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

  /** @param error undefined if the caller stopped reading the answer */
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
