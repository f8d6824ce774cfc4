import { Heap } from '../../core/state/heap.ts'

interface Entry<Item> {
  readonly item: Item
  readonly dueAt: number
}

/** Entries that count no longer, beside as many as there are items, before all are sorted anew. */
const MOST_LEFT_BEHIND = 1_000

/** What is due later. To look for what is due takes no longer the more there is that is not. */
export class Resting<Item> {
  readonly #dueAts = new Map<Item, number>()
  /** Some count no longer: an item was put off, or taken out. */
  #entries = new Heap<Entry<Item>>(sooner)
  #entryCount = 0

  get size(): number {
    return this.#dueAts.size
  }

  /** When the first is due; or earlier, if that one was put off. */
  get nextAt(): number | undefined {
    return this.#entries.first?.dueAt
  }

  /** Adds an item, or puts it off. */
  add(item: Item, dueAt: number): void {
    if (this.#dueAts.get(item) === dueAt) return
    this.#dueAts.set(item, dueAt)
    this.#push({ item, dueAt })
    if (this.#entryCount > 2 * this.#dueAts.size + MOST_LEFT_BEHIND) this.#sort()
  }

  delete(item: Item): void {
    this.#dueAts.delete(item)
  }

  /** Takes out what is due, the soonest first. */
  takeDue(now: number): Item[] {
    const taken: Item[] = []
    for (let first = this.#entries.first; first && first.dueAt <= now; first = this.#entries.first) {
      this.#entries.pop()
      this.#entryCount -= 1
      if (this.#dueAts.get(first.item) !== first.dueAt) continue
      this.#dueAts.delete(first.item)
      taken.push(first.item)
    }
    return taken
  }

  /** Takes out all. */
  takeAll(): Item[] {
    const taken = [...this.#dueAts.keys()]
    this.#dueAts.clear()
    this.#sort()
    return taken
  }

  #sort(): void {
    this.#entries = new Heap<Entry<Item>>(sooner)
    this.#entryCount = 0
    for (const [item, dueAt] of this.#dueAts) this.#push({ item, dueAt })
  }

  #push(entry: Entry<Item>): void {
    this.#entries.push(entry)
    this.#entryCount += 1
  }
}

const sooner = (a: { readonly dueAt: number }, b: { readonly dueAt: number }): number => a.dueAt - b.dueAt
