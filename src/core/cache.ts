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
