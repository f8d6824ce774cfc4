/**
 * Keeps, per room or user, the newest position of a change, so that an idle sync needs no query. It knows all changes after `floor`; for a
 * reader before that, the answer is "perhaps".
 */
export class RecentChanges {
  readonly #newest = new Map<number, number>()
  #floor: number
  /** Nothing at all has changed after this position. */
  #latest: number
  readonly #max: number

  /** @param floor the position at which this process began to watch */
  constructor(floor: number, max = 100_000) {
    this.#floor = floor
    this.#latest = floor
    this.#max = max
  }

  record(key: number, position: number): void {
    if (this.#newest.size >= this.#max && !this.#newest.has(key)) {
      this.forget(position)
    }
    this.#newest.set(key, position)
    this.#latest = Math.max(this.#latest, position)
  }

  /** Changes that were missed may have happened up to a position. */
  forget(position: number): void {
    this.#newest.clear()
    this.#floor = position
    this.#latest = Math.max(this.#latest, position)
  }

  /** Changes up to here may be unknown. */
  get floor(): number {
    return this.#floor
  }

  /** The position of the key's newest change after `floor`. */
  newest(key: number): number | undefined {
    return this.#newest.get(key)
  }

  /** Whether nothing changed after `position`, for any key. */
  isQuietSince(position: number): boolean {
    return position >= this.#latest
  }

  /** Whether the key changed after `position`: yes, no, or unknown. */
  since(key: number, position: number): boolean | undefined {
    const newest = this.#newest.get(key)
    if (newest !== undefined && newest > position) return true
    return position >= this.#floor ? false : undefined
  }
}

/** Recent changes whose order is kept too, so that a reader who looks again and again finds what changed in between. */
export class JournaledChanges extends RecentChanges {
  /** The keys of the newest changes, in a ring. */
  readonly #keys: Int32Array
  #count = 0
  /** What was recorded before this many changes is not known any more. */
  #lost = 0

  /** @param kept how many changes are kept in order. Keys are numbers of 31 bits. */
  constructor(floor: number, kept: number) {
    super(floor)
    this.#keys = new Int32Array(kept)
  }

  override record(key: number, position: number): void {
    super.record(key, position)
    this.#keys[this.#count % this.#keys.length] = key
    this.#count += 1
  }

  override forget(position: number): void {
    super.forget(position)
    this.#lost = this.#count
  }

  /** How many changes there were so far. */
  get count(): number {
    return this.#count
  }

  /** The keys that changed since there were so many changes; undefined if that is not known any more. */
  changedSince(count: number): ReadonlySet<number> | undefined {
    if (count < this.#lost || this.#count - count > this.#keys.length) return undefined
    const keys = new Set<number>()
    for (let place = count; place < this.#count; place += 1) keys.add(this.#keys[place % this.#keys.length]!)
    return keys
  }
}
