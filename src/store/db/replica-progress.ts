/** A place in the log of Postgres: bytes from its beginning. */
export type Position = bigint

/** Reads a place as Postgres writes it: `16/B374D848`. */
export function positionOf(text: string): Position {
  const [high = '0', low = '0'] = text.split('/')
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`)
}

/** As many marks as are made within the lag that is allowed, and some more. */
const MAX_MARKS = 64

/** How far a replica is, in time. Times are of `performance.now()`. */
export class ReplicaProgress {
  readonly #maxLagMs: number
  #marks: { readonly at: number; readonly position: Position }[] = []
  #reached: Position = -1n
  /** It has seen everything that was committed before this. */
  #seenAt = Number.NEGATIVE_INFINITY

  constructor(maxLagMs: number) {
    this.#maxLagMs = maxLagMs
  }

  /** The primary was here then. */
  mark(mark: { readonly at: number; readonly position: Position }): void {
    this.#marks.push({ at: mark.at, position: mark.position })
    if (this.#marks.length > MAX_MARKS) this.#marks.shift()
  }

  /** The replica is here now. A replica that was made anew may be further back than before. */
  reached(position: Position): void {
    this.#reached = position
    const passed = this.#marks.findLastIndex((mark) => mark.position <= position)
    if (passed < 0) return
    this.#seenAt = this.#marks[passed]!.at
    this.#marks = this.#marks.slice(passed)
  }

  has(position: Position): boolean {
    return this.#reached >= position
  }

  isNear(now: number): boolean {
    return now - this.#seenAt <= this.#maxLagMs
  }

  /** Whether it has not come so far for long; at the beginning that is not known yet. */
  isFar(now: number): boolean {
    const oldest = this.#marks[0]
    return oldest !== undefined && now - oldest.at > this.#maxLagMs
  }

  /** How long it has not been where the primary was: about the time between two looks, while it follows. */
  lagMs(now: number): number {
    return now - this.#seenAt
  }
}
