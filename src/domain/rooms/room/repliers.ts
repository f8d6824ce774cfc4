import type { UserId } from '../../../core/ids.ts'

/** Users of whom it is remembered whether they have replied, unless all who have are known. */
const MAX_REMEMBERED = 64

/** Who has replied in a thread, as far as that is known. */
export class Repliers {
  readonly #known = new Map<UserId, boolean>()
  #areAllKnown = false

  get size(): number {
    return this.#known.size
  }

  /** Undefined if it is not known. */
  has(userId: UserId): boolean | undefined {
    return this.#known.get(userId) ?? (this.#areAllKnown ? false : undefined)
  }

  note(userId: UserId, hasReplied: boolean): void {
    if (this.#areAllKnown) return
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear()
    this.#known.set(userId, hasReplied)
  }

  /** Nobody else has. */
  noteAll(userIds: readonly UserId[]): void {
    this.#known.clear()
    for (const userId of userIds) this.#known.set(userId, true)
    this.#areAllKnown = true
  }
}
