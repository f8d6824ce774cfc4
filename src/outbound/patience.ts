/** How many may be connecting at a time, and how long each counts: a server that takes longer may never answer. */
const AT_ONCE = 32
const COUNTS_FOR_MS = 10

/**
 * A queue in which requests that nobody waits for take turns to connect. Without it, a message to a thousand servers, most of them gone,
 * would keep the process busy with new connections and delay requests over open ones.
 */
export class Patience {
  readonly #waiting = new Set<() => void>()
  #free = AT_ONCE

  /** Resolves when a new connection may be made. @returns a function to call when connecting has succeeded or failed */
  async turn(): Promise<() => void> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.add(resolve))
    return this.#begun()
  }

  #begun(): () => void {
    let isOver = false
    const end = () => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      this.#pass()
    }
    const timer = setTimeout(end, COUNTS_FOR_MS)
    return end
  }

  /** Hands a place on. */
  #pass(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#free++
    else {
      this.#waiting.delete(next)
      next()
    }
  }
}
