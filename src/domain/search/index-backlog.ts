/** How far an index is that follows the numbers of events, and what it has still to look at. */
export class IndexBacklog {
  /** Every event up to this number was looked at. */
  position = 0
  readonly #overlap: number
  readonly #most: number
  /** Where reading the database is to begin; undefined while news of commits suffice. */
  #readFrom: number | undefined
  /** Numbers of events of which news came. */
  #waiting = new Set<number>()

  /**
   * @param overlap how far back of its position the database is read: numbers are not quite in the order of commits
   * @param most how many events may wait in memory. If more come, the database is read instead.
   */
  constructor({ overlap, most }: { readonly overlap: number; readonly most: number }) {
    this.#overlap = overlap
    this.#most = most
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0 && this.#readFrom === undefined
  }

  /** Whether the database must be read. */
  get isBehind(): boolean {
    return this.#readFrom !== undefined
  }

  /** Whether all events are to be read again. */
  get isAnew(): boolean {
    return this.#readFrom === 0
  }

  /** Every event up to this number is done with. */
  get reached(): number {
    return Math.min(this.position, this.#readFrom ?? this.position)
  }

  get waiting(): number {
    return this.#waiting.size
  }

  add(nid: number): void {
    this.#waiting.add(nid)
    if (this.#waiting.size > this.#most) this.stepBack()
  }

  /** The database is to be read. Of what waits that leaves older events, of which something else than their coming is news. */
  stepBack(): void {
    const from = Math.max(0, this.position - this.#overlap)
    this.readFrom(from)
    this.#waiting = new Set([...this.#waiting].filter((nid) => nid <= from).slice(-this.#most / 2))
  }

  /** The database is to be read from a number on. */
  readFrom(from: number): void {
    this.#readFrom = Math.min(this.#readFrom ?? from, from)
  }

  /** Where reading the database goes on: at `at`, or where it is to begin anew. */
  continueFrom(at: number): number {
    if (this.#readFrom === undefined) return at
    this.position = this.#readFrom
    this.#readFrom = undefined
    return this.position
  }

  /** Takes the numbers that waited for longest, at most so many. */
  take(count: number): number[] {
    const taken: number[] = []
    for (const nid of this.#waiting) {
      if (taken.length === count) break
      taken.push(nid)
      this.#waiting.delete(nid)
    }
    return taken
  }

  /** The position to save with what was indexed up to a number: the beginning, if all is to be read again since that was read. */
  positionAfter(upTo: number): number {
    return this.isAnew ? 0 : Math.max(this.position, upTo)
  }

  advance(upTo: number): void {
    this.position = Math.max(this.position, upTo)
  }
}
