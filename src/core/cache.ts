import { LRUCache } from 'lru-cache'

/**
 * A cache of at most `max` entries, or of a total size of `max` by `sizeOf`, which drops the least recently used first. It uses memory only for
 * its entries. lru-cache with the option `max` would allocate room for all entries at once: for a few dozen caches, a tenth of an idle server.
 */
export function createCache<K extends {}, V extends {}>(
  max: number,
  {
    sizeOf = () => 1,
    ...options
  }: { dispose?: (value: V, key: K) => void; sizeOf?: (value: V) => number; ttl?: number } = {},
): LRUCache<K, V> {
  return new LRUCache<K, V>({ ...options, maxSize: max, sizeCalculation: sizeOf })
}

/**
 * A map of at most `max` entries that keeps no order of use: for what is looked up far more often than it would be dropped. A full one begins
 * anew.
 */
export function createBoundedMap<K, V>(max: number): Pick<Map<K, V>, 'get' | 'set'> {
  const map = new Map<K, V>()
  return {
    get: (key) => map.get(key),
    set(key, value) {
      if (map.size >= max && !map.has(key)) map.clear()
      return map.set(key, value)
    },
  }
}

/**
 * A cache of at most `max` entries whose order of use is kept roughly: an entry that was not used while `max / 2` others came or were used goes.
 * For what every request looks up: that costs no more than in a map.
 */
export class RoughCache<K extends {}, V extends {}> {
  readonly #half: number
  #recent = new Map<K, V>()
  #older = new Map<K, V>()

  constructor(max: number) {
    this.#half = Math.ceil(max / 2)
  }

  get size(): number {
    return this.#recent.size + this.#older.size
  }

  get(key: K): V | undefined {
    const value = this.#recent.get(key)
    if (value !== undefined || this.#older.size === 0) return value
    const older = this.#older.get(key)
    if (older !== undefined) this.set(key, older)
    return older
  }

  set(key: K, value: V): void {
    this.#older.delete(key)
    if (this.#recent.size >= this.#half && !this.#recent.has(key)) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(key, value)
  }

  delete(key: K): void {
    this.#recent.delete(key)
    this.#older.delete(key)
  }

  clear(): void {
    this.#recent.clear()
    this.#older.clear()
  }
}
