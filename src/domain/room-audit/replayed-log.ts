import { EMPTY_STATE, type StateMap, setState } from '../../core/state/trie.ts'
import type { StatePoint } from '../../store/events/state.ts'
import type { ChainLog } from '../../store/rooms/room-report.ts'

/** A state is kept after this many changes of a chain, so that every state is near a kept one. */
const KEPT_EVERY = 256

/** A room's state log in memory, replayed change by change without its checkpoints. */
export class ReplayedLog {
  readonly #changes: ReadonlyMap<number, ChainLog>
  readonly #parents: ReadonlyMap<number, StatePoint>
  readonly #kept = new Map<number, StateMap[]>()
  /** The last state that was read of each chain: the next read is mostly near. */
  readonly #last = new Map<number, { readonly seq: number; readonly state: StateMap }>()

  constructor(changes: readonly ChainLog[], parents: ReadonlyMap<number, StatePoint>) {
    this.#changes = new Map(changes.map((chain) => [chain.chain, chain]))
    this.#parents = parents
  }

  /** Errors in the log itself. */
  flaws(): string[] {
    const flaws: string[] = []
    for (const { chain, seqs } of this.#changes.values()) {
      if (chain !== 0 && !this.#parents.has(chain)) flaws.push(`state chain ${chain} branches off nothing`)
      const gap = seqs.findIndex((seq, index) => seq !== index + 1)
      if (gap !== -1) flaws.push(`state chain ${chain} lacks its change number ${gap + 1}`)
    }
    for (const [chain, { chain: parent, seq }] of this.#parents) {
      if (!this.#has({ chain: parent, seq }))
        flaws.push(`state chain ${chain} branches off ${parent}:${seq}, which is not there`)
    }
    return flaws
  }

  #has({ chain, seq }: StatePoint): boolean {
    return (chain === 0 || this.#parents.has(chain)) && seq <= (this.#changes.get(chain)?.seqs.length ?? 0)
  }

  change({ chain, seq }: StatePoint): { readonly keyId: number; readonly eventNid: number } | undefined {
    const log = this.#changes.get(chain)
    const keyId = log?.keys[seq - 1]
    return keyId === undefined ? undefined : { keyId, eventNid: log!.nids[seq - 1]! }
  }

  /** The state at a point; undefined if the log has no such point. */
  stateAt(point: StatePoint): StateMap | undefined {
    const path: StatePoint[] = []
    for (let at: StatePoint | undefined = point; at; at = this.#parents.get(at.chain)) {
      if (!this.#has(at)) return undefined
      path.push(at)
      if (at.seq > 0 && this.#kept.has(at.chain)) break
    }
    let state = EMPTY_STATE
    for (const at of path.reverse()) state = this.#replay(at, state)
    return state
  }

  /** @param start the state at which the chain branches off, if it is read for the first time */
  #replay({ chain, seq }: StatePoint, start: StateMap): StateMap {
    if (seq === 0) return start
    const kept = this.#kept.get(chain) ?? [start]
    this.#kept.set(chain, kept)
    const last = this.#last.get(chain)
    const anchor = Math.min(Math.floor(seq / KEPT_EVERY), kept.length - 1)
    const isLastNearer = last !== undefined && last.seq <= seq && last.seq >= anchor * KEPT_EVERY
    let { seq: at, state } = isLastNearer ? last : { seq: anchor * KEPT_EVERY, state: kept[anchor]! }
    const { keys, nids } = this.#changes.get(chain)!
    while (at < seq) {
      state = setState(state, keys[at]!, nids[at]!)
      at++
      if (at === kept.length * KEPT_EVERY) kept.push(state)
    }
    this.#last.set(chain, { seq, state })
    return state
  }
}
