import { diffState, type StateMap } from '../../core/state/trie.ts'
import type { ChainWrite } from '../../store/event-batch.ts'
import type { StatePoint } from '../../store/state.ts'
import type { Head, Room, StateChange } from './room.ts'

/** A state and where it stands in the log. */
export interface Located {
  readonly point: StatePoint
  readonly state: StateMap
}

type KeyChange = Pick<StateChange, 'keyId' | 'eventNid' | 'before'>

/**
 * What one write adds to the log of a room's states. A change goes to the tip of the chain that its state stands on; where
 * others have changed that chain since, a new one branches off.
 */
export class StateLog {
  readonly changes: StateChange[] = []
  readonly chains: ChainWrite[] = []
  readonly #roomNid: number
  readonly #tips: Map<number, number>
  #lastChain: number

  /** @param tips the last changes of chains besides the head's; a chain whose tip is not known is left as it is */
  constructor(room: Room, head: Head, tips: ReadonlyMap<number, number> = room.tips) {
    this.#roomNid = room.nid
    this.#tips = new Map(tips).set(head.chain, head.tip)
    this.#lastChain = head.lastChain
  }

  /** The point of a state: that of a candidate that is the same, else a new one, grown from the candidate that is most alike. */
  locate(state: StateMap, candidates: readonly Located[]): Located {
    let best: { readonly from: Located; readonly changes: readonly KeyChange[] } | undefined
    for (const from of candidates) {
      const changes = changesBetween(from.state, state)
      if (!best || changes.length < best.changes.length) best = { from, changes }
      if (changes.length === 0) break
    }
    if (!best) throw new RangeError('a state has to grow from another')
    return { point: this.grow(best.from.point, best.changes), state }
  }

  /** The point after changes. @param branchesOff leaves the tip of the chain to others */
  grow(point: StatePoint, changes: readonly KeyChange[], branchesOff = false): StatePoint {
    if (changes.length === 0) return point
    const { chain, seq } = this.open(point, branchesOff)
    for (const [index, change] of changes.entries()) {
      this.changes.push({ chain, seq: seq + 1 + index, ...change })
    }
    const last = { chain, seq: seq + changes.length }
    this.#tips.set(chain, last.seq)
    return last
  }

  /** The same state at a point where it can be changed. */
  open(point: StatePoint, branchesOff = false): StatePoint {
    if (!branchesOff && this.#tips.get(point.chain) === point.seq) return point
    const chain = ++this.#lastChain
    this.chains.push({ roomNid: this.#roomNid, chain, parentChain: point.chain, parentSeq: point.seq })
    this.#tips.set(chain, 0)
    return { chain, seq: 0 }
  }

  /** The parts of a head that speak of a state. */
  head({ point, state }: Located): Pick<Head, 'chain' | 'seq' | 'state' | 'tip' | 'lastChain'> {
    return { ...point, state, tip: this.#tips.get(point.chain) ?? Number.NaN, lastChain: this.#lastChain }
  }
}

function changesBetween(from: StateMap, to: StateMap): KeyChange[] {
  const changes: KeyChange[] = []
  diffState(from, to, (keyId, before, eventNid) => changes.push({ keyId, before, eventNid }))
  return changes
}
