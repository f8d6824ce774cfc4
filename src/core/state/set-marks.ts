const WORD_BITS = 32

/** How many of the sets have marked a node. */
const NONE = 0
const SOME = 1
const ALL = 2

/** For each node of a graph, which of some sets have reached it: a bit per set, in as many words as it takes. */
export class SetMarks {
  /** Nodes that some sets have marked, but not all. */
  partial = 0
  readonly #words: Int32Array
  /** Words per node. */
  readonly #width: number
  readonly #full: Int32Array

  constructor(nodes: number, sets: number) {
    this.#width = Math.ceil(sets / WORD_BITS)
    this.#words = new Int32Array(nodes * this.#width)
    this.#full = new Int32Array(this.#width).fill(-1)
    const inLast = sets % WORD_BITS
    if (inLast > 0) this.#full[this.#width - 1] = (1 << inLast) - 1
  }

  /** Marks a node, so far unmarked, for all sets. */
  markForAll(node: number): void {
    this.#words.set(this.#full, node * this.#width)
  }

  /** Takes all marks off a node that was marked for all sets. */
  clear(node: number): void {
    this.#words.fill(0, node * this.#width, (node + 1) * this.#width)
  }

  mark(node: number, set: number): void {
    const before = this.#marked(node)
    const word = node * this.#width + Math.floor(set / WORD_BITS)
    this.#words[word] = this.#words[word]! | (1 << (set % WORD_BITS))
    this.#count(before, this.#marked(node))
  }

  /** Gives a node the marks of another. */
  inherit(node: number, from: number): void {
    const before = this.#marked(node)
    if (before === ALL) return
    const words = this.#words
    const width = this.#width
    for (let word = 0; word < width; word++) words[node * width + word]! |= words[from * width + word]!
    this.#count(before, this.#marked(node))
  }

  isMarked(node: number): boolean {
    return this.#marked(node) !== NONE
  }

  isPartial(node: number): boolean {
    return this.#marked(node) === SOME
  }

  #count(before: number, after: number): void {
    if (before !== SOME && after === SOME) this.partial++
    else if (before === SOME && after === ALL) this.partial--
  }

  #marked(node: number): number {
    const width = this.#width
    let isNone = true
    let isAll = true
    for (let word = 0; word < width; word++) {
      const marks = this.#words[node * width + word]
      if (marks !== 0) isNone = false
      if (marks !== this.#full[word]) isAll = false
    }
    return isNone ? NONE : isAll ? ALL : SOME
  }
}
