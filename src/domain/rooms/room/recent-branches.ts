import { bytesBeyond, type StateMap } from '../../../core/state/trie.ts'
import type { StatePoint } from '../../../store/events/state.ts'

interface Branch {
  readonly state: StateMap
  readonly bytes: number
}

const KEPT = 64
const BRANCH_BYTES = 200

/** The states of a room's branches, by point. The least recently used comes first. */
export class RecentBranches {
  readonly #branches = new Map<string, Branch>()
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  get({ chain, seq }: StatePoint): StateMap | undefined {
    const key = `${chain} ${seq}`
    const known = this.#branches.get(key)
    if (!known) return undefined
    this.#branches.delete(key)
    this.#branches.set(key, known)
    return known.state
  }

  /** @param present the room's current state: what a branch shares with it takes no more memory */
  keep({ chain, seq }: StatePoint, state: StateMap, present: StateMap): void {
    const key = `${chain} ${seq}`
    this.#drop(key)
    const bytes = bytesBeyond(present, state) + BRANCH_BYTES
    this.#branches.set(key, { state, bytes })
    this.#bytes += bytes
    if (this.#branches.size > KEPT) this.#drop(this.#branches.keys().next().value!)
  }

  #drop(key: string): void {
    this.#bytes -= this.#branches.get(key)?.bytes ?? 0
    this.#branches.delete(key)
  }
}
