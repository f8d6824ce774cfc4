import { type StateMap, setState } from '../../../../core/state/trie.ts'
import type { StateChange, StateHead } from '../head.ts'
import type { RoomEvent } from '../room-event.ts'

const KEPT = 256
/** Of each change: its number in the chain, its key, and the event that it replaced. */
const WIDTH = 3
/** Bytes of a change: its numbers, and what an array that grows has to spare. */
const UNDO_BYTES = 30

/**
 * The last changes of a room's current state, without gaps, oldest first. Undoing them gives the earlier states. As plain numbers they take
 * half the memory that objects would.
 */
export class UndoLog {
  #undo: number[] = []

  get bytes(): number {
    return this.#length * UNDO_BYTES
  }

  get #length(): number {
    return this.#undo.length / WIDTH
  }

  /** The state after change `seq` of the current chain, found by undoing later changes; undefined when it is too long ago. */
  stateAt(present: StateHead, chain: number, seq: number): StateMap | undefined {
    if (chain !== present.chain || seq > present.seq) return undefined
    if (seq === present.seq) return present.state
    const undo = this.#undo
    if (undo.length === 0 || undo[0]! > seq + 1) return undefined
    let { state } = present
    for (let i = undo.length - WIDTH; i >= 0 && undo[i]! > seq; i -= WIDTH) {
      state = setState(state, undo[i + 1]!, undo[i + 2]!)
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
      this.#undo.push(seq, keyId, value)
      at = seq
    }
    if (at !== after.seq) this.#undo = []
    if (this.#length > 2 * KEPT) this.#undo = this.#undo.slice(-KEPT * WIDTH)
    return elsewhere
  }

  /** Learns from an older state event how to undo it. False if a change in between is not known. */
  learn(event: RoomEvent, present: StateHead): boolean {
    if (event.keyId === undefined) return true
    const seq = event.stateSeq + 1
    const next = this.#undo[0] ?? present.seq + 1
    if (event.stateChain !== present.chain || seq !== next - 1) return false
    this.#undo.unshift(seq, event.keyId, event.replacesNid ?? 0)
    return true
  }
}
