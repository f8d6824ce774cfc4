/**
 * Limits how many requests to other servers run at a time, for one user and for all users together. Users who wait get their turns in
 * order.
 */
export class AskingPlaces {
  readonly #inAll: number
  readonly #running = new Map<number, number>()
  /** The waiting requests of each user, in the order in which users get a turn. */
  readonly #waiting = new Map<number, Waiting>()
  #taken = 0

  constructor(inAll: number) {
    this.#inAll = inAll
  }

  /** How many requests are running. */
  get taken(): number {
    return this.#taken
  }

  /** Resolves to true with a place, which `leave` gives back, or to false if the signal came first. */
  enter(userNid: number, atOnce: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    if (!this.#waiting.has(userNid) && this.#isFree(userNid, atOnce)) {
      this.#take(userNid)
      return Promise.resolve(true)
    }
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(userNid) ?? { atOnce, turns: new Set<() => void>() }
      this.#waiting.set(userNid, waiting)
      const giveUp = (): void => {
        waiting.turns.delete(turn)
        if (waiting.turns.size === 0) this.#waiting.delete(userNid)
        resolve(false)
      }
      const turn = (): void => {
        signal.removeEventListener('abort', giveUp)
        resolve(true)
      }
      waiting.turns.add(turn)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  leave(userNid: number): void {
    this.#taken--
    const running = (this.#running.get(userNid) ?? 1) - 1
    if (running === 0) this.#running.delete(userNid)
    else this.#running.set(userNid, running)
    this.#passOn()
  }

  #isFree(userNid: number, atOnce: number): boolean {
    return this.#taken < this.#inAll && (this.#running.get(userNid) ?? 0) < atOnce
  }

  #take(userNid: number): void {
    this.#taken++
    this.#running.set(userNid, (this.#running.get(userNid) ?? 0) + 1)
  }

  /** Gives the place to the first user who may have one more. That user then goes to the end of the queue. */
  #passOn(): void {
    for (const [userNid, waiting] of this.#waiting) {
      if (this.#taken >= this.#inAll) return
      if (!this.#isFree(userNid, waiting.atOnce)) continue
      const [turn] = waiting.turns
      this.#waiting.delete(userNid)
      if (turn === undefined) continue
      waiting.turns.delete(turn)
      if (waiting.turns.size > 0) this.#waiting.set(userNid, waiting)
      this.#take(userNid)
      turn()
      return
    }
  }
}

interface Waiting {
  readonly atOnce: number
  readonly turns: Set<() => void>
}
