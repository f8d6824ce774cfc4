import { type StateMap, setState } from '../../../core/state/trie.ts'
import type { StateChange, StateHead } from './head.ts'
import type { RoomEvent } from './room-event.ts'

/** A recent change of state, kept so that earlier states can be found by undoing it. */
interface Undo {
  readonly seq: number
  readonly keyId: number
  readonly before: number
}

const KEPT = 256
const UNDO_BYTES = 56

/** The last changes of a room's current state, without gaps. Undoing them gives the earlier states. */
export class UndoLog {
  readonly #undo: Undo[] = []

  get bytes(): number {
    return this.#undo.length * UNDO_BYTES
  }

  /** The state after change `seq` of the current chain, found by undoing later changes; undefined when it is too long ago. */
  stateAt(present: StateHead, chain: number, seq: number): StateMap | undefined {
    if (chain !== present.chain || seq > present.seq) return undefined
    if (seq === present.seq) return present.state
    if (this.#undo.length === 0 || this.#undo[0]!.seq > seq + 1) return undefined
    let { state } = present
    for (let i = this.#undo.length - 1; i >= 0 && this.#undo[i]!.seq > seq; i--) {
      const { keyId, before } = this.#undo[i]!
      state = setState(state, keyId, before)
    }
    return state
  }

  /**
   * Records changes. Undoing stops where the current state moved to another branch.
   *
   * @returns how many of the changes are in other branches than the one where the state stands after them
   */
  record(changes: readonly StateChange[], before: StateHead, after: StateHead): number {
    let at = after.chain === before.chain ? before.seq : -1
    let elsewhere = 0
    for (const { chain, seq, keyId, before: value } of changes) {
      if (chain !== after.chain || seq !== at + 1 || seq > after.seq) {
        elsewhere++
        continue
      }
      this.#undo.push({ seq, keyId, before: value })
      at = seq
    }
    if (at !== after.seq) this.#undo.length = 0
    if (this.#undo.length > 2 * KEPT) this.#undo.splice(0, this.#undo.length - KEPT)
    return elsewhere
  }

  /** Learns from an older state event how to undo it. False if a change in between is not known. */
  learn(event: RoomEvent, present: StateHead): boolean {
    if (event.keyId === undefined) return true
    const seq = event.stateSeq + 1
    const next = this.#undo[0]?.seq ?? present.seq + 1
    if (event.stateChain !== present.chain || seq !== next - 1) return false
    this.#undo.unshift({ seq, keyId: event.keyId, before: event.replacesNid ?? 0 })
    return true
  }
}
