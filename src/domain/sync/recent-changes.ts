/**
 * Remembers, per room or user, the newest position at which something changed, so that an idle sync asks the database nothing.
 * It knows all changes after `floor`; for what a reader has not seen from before, the answer is "perhaps".
 */
export class RecentChanges {
  readonly #newest = new Map<number, number>()
  #floor: number
  /** Nothing at all has changed after it. */
  #latest: number
  readonly #max: number

  /** @param floor the position when this process began to watch */
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

  /** Something that is not known here may have changed, up to a position. */
  forget(position: number): void {
    this.#newest.clear()
    this.#floor = position
    this.#latest = Math.max(this.#latest, position)
  }

  /** Whether nothing changed after `position`, whatever the key. */
  isQuietSince(position: number): boolean {
    return position >= this.#latest
  }

  /** Whether anything changed after `position`: yes, no, or not known here. */
  since(key: number, position: number): boolean | undefined {
    const newest = this.#newest.get(key)
    if (newest !== undefined && newest > position) return true
    return position >= this.#floor ? false : undefined
  }
}
