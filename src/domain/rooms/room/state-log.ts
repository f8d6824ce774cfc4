import { diffState, getState, type StateMap, setState } from '../../../core/state/trie.ts'
import type { ChainWrite } from '../../../store/events/event-writes.ts'
import type { StatePoint } from '../../../store/events/state.ts'
import type { Head, StateChange, StateHead } from './head.ts'
import type { Room } from './room.ts'

/** A state and its point in the log. */
export interface Located {
  readonly point: StatePoint
  readonly state: StateMap
}

type KeyChange = Pick<StateChange, 'keyId' | 'eventNid' | 'before'>

/**
 * What one write adds to the log of a room's states. A change goes to the tip of the chain of its state. If that chain already has later
 * changes, a new chain branches off.
 */
export class StateLog {
  readonly changes: StateChange[] = []
  readonly chains: ChainWrite[] = []
  readonly #room: Room
  /** The last change of each chain that this write continues, and of the head's chain. */
  readonly #tips = new Map<number, number>()
  #lastChain: number
  /** The chain that only the room's current state may continue. */
  readonly #spared: number | undefined

  /** @param isPast whether the write is history; then the head's chain stays free for the current state */
  constructor(room: Room, head: Head, isPast = false) {
    this.#room = room
    this.#spared = isPast ? head.chain : undefined
    this.#tips.set(head.chain, head.tip)
    this.#lastChain = head.lastChain
  }

  /** A chain whose tip is not known is not continued. */
  #tipOf(chain: number): number | undefined {
    return this.#tips.get(chain) ?? this.#room.tips.get(chain)
  }

  /** The point of a state: that of an equal candidate, otherwise a new point that continues the candidate with the fewest differences. */
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

  /** The point after some changes. @param branchesOff leaves the tip of the chain to others */
  grow(point: StatePoint, changes: readonly KeyChange[], branchesOff = false): StatePoint {
    if (changes.length === 0) return point
    const { chain, seq } = this.#open(point, branchesOff)
    for (const [index, change] of changes.entries()) {
      this.changes.push({ chain, seq: seq + 1 + index, ...change })
    }
    const last = { chain, seq: seq + changes.length }
    this.#tips.set(chain, last.seq)
    return last
  }

  /** A state with one key set to an event. @param branchesOff leaves the tip of the chain to others */
  set({ point, state }: Located, keyId: number, eventNid: number, branchesOff = false): Located {
    const change = { keyId, eventNid, before: getState(state, keyId) }
    return { point: this.grow(point, [change], branchesOff), state: setState(state, keyId, eventNid) }
  }

  /** The same state at the start of a new chain: the chain behind it can still be written to. */
  branchOff({ point, state }: Located): Located {
    return { point: this.#branch(point), state }
  }

  /** The same state at a point that changes can follow. */
  #open(point: StatePoint, branchesOff = false): StatePoint {
    const isContinued = !branchesOff && point.chain !== this.#spared
    if (isContinued && this.#tipOf(point.chain) === point.seq) return point
    return this.#branch(point)
  }

  #branch(point: StatePoint): StatePoint {
    const chain = ++this.#lastChain
    this.chains.push({ roomNid: this.#room.nid, chain, parentChain: point.chain, parentSeq: point.seq })
    this.#tips.set(chain, 0)
    return { chain, seq: 0 }
  }

  /** The fields of a head that describe its state. */
  head({ point, state }: Located): StateHead {
    const { chain, seq } = point
    return { chain, seq, state, tip: this.#tipOf(chain) ?? Number.NaN, lastChain: this.#lastChain }
  }
}

/** The current state of a room, with its point. */
export function whereHeadIs({ chain, seq, state }: StateHead): Located {
  return { point: { chain, seq }, state }
}

/** The point right before the last change of a point. */
export function beforeChange({ chain, seq }: StatePoint): StatePoint {
  return { chain, seq: seq - 1 }
}

function changesBetween(from: StateMap, to: StateMap): KeyChange[] {
  const changes: KeyChange[] = []
  diffState(from, to, (keyId, before, eventNid) => changes.push({ keyId, before, eventNid }))
  return changes
}
