import { differencesOf } from './differences.ts'
import { grown, NumberIndex } from './number-index.ts'
import { SetMarks } from './set-marks.ts'
import { forEachState, type StateMap } from './trie.ts'

/**
 * The auth graph of a room: each event with its `auth_events`.
 *
 * Events are numbered in the order of adding, and the auth events of an event must be added before it. So there is no cycle, each event's
 * number is above those of its auth chain, and every walk is a sweep over typed arrays in descending order, without a queue or a set.
 *
 * The edges of all events are in one array; those of event `i` are at `starts[i]` to `starts[i + 1]`.
 */
export class AuthGraph {
  readonly #events = new NumberIndex()
  #starts = new Int32Array(128)
  #edges = new Int32Array(512)

  get size(): number {
    return this.#events.size
  }

  /** Memory held, in bytes. */
  get bytes(): number {
    return this.#events.bytes + this.#starts.byteLength + this.#edges.byteLength
  }

  has(nid: number): boolean {
    return this.#events.indexOf(nid) !== -1
  }

  /**
   * Adds an event and its auth edges. A known event stays unchanged.
   *
   * @throws RangeError when one of `authNids` has not been added before
   */
  add(nid: number, authNids: readonly number[]): void {
    if (this.has(nid)) return
    const auth = authNids.map((authNid) => this.#indexOf(authNid))
    const index = this.#events.add(nid)
    const start = this.#starts[index]!
    const end = start + auth.length
    this.#edges = grown(this.#edges, end)
    this.#edges.set(auth, start)
    this.#starts = grown(this.#starts, index + 2)
    this.#starts[index + 1] = end
  }

  /**
   * The auth events of an event.
   *
   * @throws RangeError when the event is not known
   */
  authOf(nid: number): number[] {
    const cited: number[] = []
    this.#forEachAuth(this.#indexOf(nid), (auth) => cited.push(this.#events.valueAt(auth)))
    return cited
  }

  /**
   * The auth difference of full states: what is in the full auth chain of some of them, but not of all. An event of a state
   * belongs to that state's chain.
   *
   * Each event gets a bit for each state whose chain it is in, starting from the states' own events. A descending sweep copies
   * the bits to auth events, and ends as soon as every remaining event has either all bits or none.
   *
   * @throws RangeError when a state holds an event that is not known
   */
  difference(states: readonly StateMap[]): number[] {
    const sets = [...new Set(states)]
    const marks = new SetMarks(this.size, sets.length)
    let index = this.#markStates(marks, sets)
    const found: number[] = []
    for (; marks.partial > 0; index--) {
      if (!marks.isMarked(index)) continue
      const end = this.#starts[index + 1]!
      for (let edge = this.#starts[index]!; edge < end; edge++) marks.inherit(this.#edges[edge]!, index)
      if (!marks.isPartial(index)) continue
      found.push(this.#events.valueAt(index))
      marks.partial--
    }
    return found
  }

  /** Marks the events of each state. Events that all states share are visited once. Gives the highest marked index. */
  #markStates(marks: SetMarks, states: readonly StateMap[]): number {
    const [first] = states
    if (first === undefined || states.length === 1) return -1
    let highest = -1
    const find = (nid: number): number => {
      const index = this.#indexOf(nid)
      if (index > highest) highest = index
      return index
    }
    forEachState(first, (_, nid) => marks.markForAll(find(nid)))
    const differences = differencesOf(states)
    for (const [own] of differences.values()) if (own) marks.clear(find(own))
    for (const values of differences.values()) {
      for (const [set, nid] of values.entries()) if (nid !== 0) marks.mark(find(nid), set)
    }
    return highest
  }

  /**
   * The conflicted state subgraph of room version 12: all events on paths along auth edges from one of `nids` to another,
   * ends included, and each of `nids` itself.
   *
   * @throws RangeError when one of `nids` is not known
   */
  between(nids: readonly number[]): number[] {
    const ends = nids.map((nid) => this.#indexOf(nid))
    const low = ends.reduce((least, index) => Math.min(least, index), this.size)
    const high = ends.reduce((most, index) => Math.max(most, index), -1)
    const isEnd = new Uint8Array(Math.max(0, high - low + 1))
    for (const index of ends) isEnd[index - low] = 1
    const isBelow = isEnd.slice()
    for (let index = high; index >= low; index--) {
      if (isBelow[index - low] === 0) continue
      this.#forEachAuth(index, (auth) => {
        if (auth >= low) isBelow[auth - low] = 1
      })
    }
    const isAbove = isEnd
    const found: number[] = []
    for (let index = low; index <= high; index++) {
      if (isBelow[index - low] === 0) continue
      this.#forEachAuth(index, (auth) => {
        if (auth >= low && isAbove[auth - low] === 1) isAbove[index - low] = 1
      })
      if (isAbove[index - low] === 1) found.push(this.#events.valueAt(index))
    }
    return found
  }

  #forEachAuth(index: number, visit: (auth: number) => void): void {
    const end = this.#starts[index + 1]!
    for (let edge = this.#starts[index]!; edge < end; edge++) visit(this.#edges[edge]!)
  }

  #indexOf(nid: number): number {
    const index = this.#events.indexOf(nid)
    if (index === -1) throw new RangeError(`event ${nid} is not in the auth graph`)
    return index
  }
}
