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
