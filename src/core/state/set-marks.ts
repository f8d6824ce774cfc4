const WORD_BITS = 32

/** For each node of a graph, the sets that have reached it: a bit per set, in as many words as needed. */
export class SetMarks {
  /** The number of nodes that some sets have marked, but not all. */
  partial = 0
  readonly #words: Int32Array
  /** Words per node. */
  readonly #width: number
  /** The words of a node that all sets have marked. */
  readonly #full: Int32Array

  constructor(nodes: number, sets: number) {
    this.#width = Math.ceil(sets / WORD_BITS)
    this.#words = new Int32Array(nodes * this.#width)
    this.#full = new Int32Array(this.#width).fill(-1)
    const inLast = sets % WORD_BITS
    if (inLast > 0) this.#full[this.#width - 1] = (1 << inLast) - 1
  }

  /** Marks a node for all sets, none of which has marked it before. */
  markForAll(node: number): void {
    const start = node * this.#width
    for (let word = 0; word < this.#width; word++) this.#words[start + word] = this.#full[word]!
  }

  /** Takes the marks off a node that all sets have marked. */
  clear(node: number): void {
    this.#words.fill(0, node * this.#width, (node + 1) * this.#width)
  }

  mark(node: number, set: number): void {
    const wasPartial = this.isPartial(node)
    this.#words[node * this.#width + Math.floor(set / WORD_BITS)]! |= 1 << (set % WORD_BITS)
    this.partial += Number(this.isPartial(node)) - Number(wasPartial)
  }

  /** Adds the marks of another node, which has some, to a node. */
  inherit(node: number, from: number): void {
    const words = this.#words
    const width = this.#width
    let hadSome = false
    let hadAll = true
    let hasAll = true
    for (let word = 0; word < width; word++) {
      const before = words[node * width + word]!
      const after = before | words[from * width + word]!
      const full = this.#full[word]
      words[node * width + word] = after
      if (before !== 0) hadSome = true
      if (before !== full) hadAll = false
      if (after !== full) hasAll = false
    }
    if (hadAll) return
    if (hadSome && hasAll) this.partial--
    else if (!hadSome && !hasAll) this.partial++
  }

  isMarked(node: number): boolean {
    const start = node * this.#width
    for (let word = 0; word < this.#width; word++) if (this.#words[start + word] !== 0) return true
    return false
  }

  isPartial(node: number): boolean {
    const start = node * this.#width
    for (let word = 0; word < this.#width; word++) {
      if (this.#words[start + word] !== this.#full[word]) return this.isMarked(node)
    }
    return false
  }
}
