/** A node in the list of entries, oldest first. The list is a ring; one empty node stands before the oldest and after the newest entry. */
class Link {
  older: Link = this
  newer: Link = this
  /** The age of the budget at which it was used last. */
  usedAt = 0
  /** The age of the budget when the entry was last used, as of when it got its place in the list. */
  placedAt = 0
  /** Whether it was used since then. It keeps its place until the budget looks for what may go: a use must be cheap. */
  isUsed = false

  /** Removes the entry from its cache. */
  forget(): void {}

  linkBefore(newer: Link): void {
    this.older = newer.older
    this.newer = newer
    newer.older.newer = this
    newer.older = this
  }

  unlink(): void {
    this.older.newer = this.newer
    this.newer.older = this.older
  }
}

class Entry<K extends {}, V extends {}> extends Link {
  readonly part: BudgetPart<K, V>
  readonly key: K
  value: V
  bytes = 0

  constructor(part: BudgetPart<K, V>, key: K, value: V) {
    super()
    this.part = part
    this.key = key
    this.value = value
  }

  override forget(): void {
    this.part.delete(this.key)
  }
}

/** Bytes of an entry beside its value: the record above, and its slot in a map whose table is half empty on average. */
const ENTRY_BYTES = 144

/** The caches that are counted by themselves; all other parts are `others`. */
export type CountedCache = 'events' | 'rooms' | 'others'

/** How often something was looked for in caches and was there, or was not. */
export interface CacheUses {
  hits: number
  misses: number
}

export interface PartOptions<K, V> {
  readonly name?: CountedCache
  /** The bytes of a value now. Called at each use, so it must be cheap. */
  bytesOf(value: V): number
  /** Called for each removed value, except by {@link BudgetPart.clear}. */
  gone?(value: V, key: K): void
}

/** A cache that shares its budget with others. */
export class BudgetPart<K extends {}, V extends {}> {
  readonly #budget: ByteBudget
  readonly #options: PartOptions<K, V>
  readonly #entries = new Map<K, Entry<K, V>>()
  readonly #uses: CacheUses
  #bytes = 0

  constructor(budget: ByteBudget, options: PartOptions<K, V>) {
    this.#budget = budget
    this.#options = options
    this.#uses = budget.uses[options.name ?? 'others']
  }

  /** Bytes held. */
  get bytes(): number {
    return this.#bytes
  }

  get size(): number {
    return this.#entries.size
  }

  /** Marks the value as used now and updates its size, since it may have grown. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) {
      this.#uses.misses++
      return undefined
    }
    this.#uses.hits++
    const { value } = entry
    this.#budget.use(entry)
    this.#weigh(entry)
    return value
  }

  /** The value, without marking it as used or updating its size. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)?.value
  }

  set(key: K, value: V): void {
    let entry = this.#entries.get(key)
    if (entry) {
      entry.value = value
      this.#budget.use(entry)
    } else {
      entry = new Entry(this, key, value)
      this.#entries.set(key, entry)
      this.#budget.place(entry)
    }
    this.#weigh(entry)
  }

  /** Updates the size of a value that has grown, if it is still in the cache. */
  grown(key: K, value: V): void {
    const entry = this.#entries.get(key)
    if (entry?.value === value) this.#weigh(entry)
  }

  delete(key: K): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    this.#entries.delete(key)
    this.#drop(entry)
    this.#options.gone?.(entry.value, key)
  }

  clear(): void {
    for (const entry of this.#entries.values()) this.#drop(entry)
    this.#entries.clear()
  }

  values(): V[] {
    return [...this.#entries.values()].map(({ value }) => value)
  }

  #weigh(entry: Entry<K, V>): void {
    const more = this.#options.bytesOf(entry.value) + ENTRY_BYTES - entry.bytes
    if (more === 0) return
    entry.bytes += more
    this.#bytes += more
    this.#budget.take(more)
  }

  #drop(entry: Entry<K, V>): void {
    entry.unlink()
    this.#bytes -= entry.bytes
    this.#budget.giveBack(entry.bytes)
  }
}

/** How many used entries may be passed over to find one that goes, so that finding it takes no time that others notice. */
const MAX_PASSED_OVER = 64

/**
 * One budget of bytes for several caches: an entry of any cache that was not used for long goes first ("second chance": the oldest entry
 * that was not used since it got its place). So no cache needs a share of its own, and unused entries make room for used ones.
 */
export class ByteBudget {
  readonly maxBytes: number
  readonly uses: Readonly<Record<CountedCache, CacheUses>> = {
    events: { hits: 0, misses: 0 },
    rooms: { hits: 0, misses: 0 },
    others: { hits: 0, misses: 0 },
  }
  #bytes = 0
  #age = 0
  readonly #end = new Link()

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  /** Bytes held by all parts. */
  get bytes(): number {
    return this.#bytes
  }

  /** A cache within the budget. */
  part<K extends {}, V extends {}>(options: PartOptions<K, V>): BudgetPart<K, V> {
    return new BudgetPart(this, options)
  }

  /** Advances the time: removes entries that were not used in the last `ages` calls. */
  grow(ages: number): void {
    this.#age++
    const since = this.#age - ages
    for (let oldest = this.#end.newer; oldest !== this.#end && oldest.placedAt < since; oldest = this.#end.newer) {
      if (oldest.usedAt < since) oldest.forget()
      else this.#replace(oldest)
    }
  }

  /** For parts: marks an entry as used now. */
  use(entry: Link): void {
    entry.usedAt = this.#age
    entry.isUsed = true
  }

  /** For parts: gives a new entry the newest place. */
  place(entry: Link): void {
    entry.usedAt = this.#age
    entry.placedAt = this.#age
    entry.isUsed = false
    entry.linkBefore(this.#end)
  }

  /** For parts: subtracts freed bytes. */
  giveBack(bytes: number): void {
    this.#bytes -= bytes
  }

  /** For parts: adds bytes (or subtracts, if negative) and makes room for them. An entry larger than the whole budget is removed itself. */
  take(bytes: number): void {
    this.#bytes += bytes
    while (this.#bytes > this.maxBytes && this.#end.newer !== this.#end) this.#leastUsed().forget()
  }

  #leastUsed(): Link {
    for (let passed = 0; passed < MAX_PASSED_OVER && this.#end.newer.isUsed; passed++) this.#replace(this.#end.newer)
    return this.#end.newer
  }

  /** Gives an entry the newest place instead of its own. It keeps the time of its last use. */
  #replace(entry: Link): void {
    entry.unlink()
    entry.placedAt = entry.usedAt
    entry.isUsed = false
    entry.linkBefore(this.#end)
  }
}
