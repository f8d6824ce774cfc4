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

/** Bytes of an entry beside its value: the record above. */
const ENTRY_BYTES = 96

const SLOT_BYTES = 28
const FEWEST_SLOTS = 4

/**
 * The size of a map's table. Deleted entries keep their slots until the table is full: then it is doubled, unless half of them are such. So a
 * map in which entries come and go has up to four slots for each.
 */
class MapTable {
  #slots = 0
  #used = 0
  #size = 0

  /** An entry came. @returns how many bytes the table takes more */
  add(): number {
    this.#size++
    if (this.#used < this.#slots) {
      this.#used++
      return 0
    }
    const deleted = this.#used - this.#size + 1
    this.#used = this.#size
    return deleted > 0 && deleted >= this.#slots / 2 ? 0 : this.#resize(Math.max(FEWEST_SLOTS, 2 * this.#slots))
  }

  /** An entry went. @returns how many bytes the table takes less */
  remove(): number {
    this.#size--
    if (this.#size >= this.#slots / 4) return 0
    this.#used = this.#size
    return -this.#resize(this.#size === 0 ? 0 : this.#slots / 2)
  }

  #resize(slots: number): number {
    const more = SLOT_BYTES * (slots - this.#slots)
    this.#slots = slots
    return more
  }
}

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
  /** How many other maps have an entry for each value. */
  readonly indexes?: number
}

/** A cache that shares its budget with others. */
export class BudgetPart<K extends {}, V extends {}> {
  readonly #budget: ByteBudget
  readonly #options: PartOptions<K, V>
  readonly #entries = new Map<K, Entry<K, V>>()
  readonly #uses: CacheUses
  readonly #table = new MapTable()
  readonly #maps: number
  #bytes = 0

  constructor(budget: ByteBudget, options: PartOptions<K, V>) {
    this.#budget = budget
    this.#options = options
    this.#uses = budget.uses[options.name ?? 'others']
    this.#maps = 1 + (options.indexes ?? 0)
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
    const known = this.#entries.get(key)
    if (known) {
      known.value = value
      this.#budget.use(known)
      this.#weigh(known)
      return
    }
    const entry = new Entry(this, key, value)
    this.#entries.set(key, entry)
    this.#budget.place(entry)
    this.#weigh(entry, this.#maps * this.#table.add())
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

  /** All at once, because room may be made by removing this very entry. @param tableBytes how many more the tables take */
  #weigh(entry: Entry<K, V>, tableBytes = 0): void {
    const more = this.#options.bytesOf(entry.value) + ENTRY_BYTES - entry.bytes
    if (more + tableBytes === 0) return
    entry.bytes += more
    this.#bytes += more + tableBytes
    this.#budget.take(more + tableBytes)
  }

  #drop(entry: Entry<K, V>): void {
    entry.unlink()
    const bytes = entry.bytes + this.#maps * this.#table.remove()
    this.#bytes -= bytes
    this.#budget.giveBack(bytes)
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
