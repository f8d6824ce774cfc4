/** How many may be connecting at a time, and for how long each counts: who takes longer may never answer. */
const AT_ONCE = 32
const COUNTS_FOR_MS = 10

/**
 * Where requests that nobody waits for have their turn to connect. A message to a thousand servers, most of them gone, would else keep
 * the process busy with new connections, while what goes over open ones stands behind them.
 */
export class Patience {
  readonly #waiting = new Set<() => void>()
  #free = AT_ONCE

  /** Resolves when a new connection may be made. @returns to be called when that came to something, or to nothing */
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
