/** A binary heap: the least item first. */
export class Heap<Item> {
  readonly #items: Item[] = []
  readonly #compare: (a: Item, b: Item) => number

  constructor(compare: (a: Item, b: Item) => number) {
    this.#compare = compare
  }

  /** The least item. */
  get first(): Item | undefined {
    return this.#items[0]
  }

  push(item: Item): void {
    const items = this.#items
    let hole = items.length
    while (hole > 0) {
      const parent = (hole - 1) >>> 1
      if (this.#compare(items[parent]!, item) <= 0) break
      items[hole] = items[parent]!
      hole = parent
    }
    items[hole] = item
  }

  pop(): Item | undefined {
    const items = this.#items
    const least = items[0]
    const last = items.pop()
    if (last !== undefined && items.length > 0) this.#sink(last)
    return least
  }

  /** Puts an item where the root was taken, or below. */
  #sink(item: Item): void {
    const items = this.#items
    let hole = 0
    for (let child = 1; child < items.length; child = 2 * hole + 1) {
      const right = child + 1
      if (right < items.length && this.#compare(items[right]!, items[child]!) < 0) child = right
      if (this.#compare(item, items[child]!) <= 0) break
      items[hole] = items[child]!
      hole = child
    }
    items[hole] = item
  }
}
