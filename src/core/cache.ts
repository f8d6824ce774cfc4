import { LRUCache } from 'lru-cache'

/**
 * A cache of at most `max` entries that forgets the least recently used first. It takes memory for what it holds; given `max` itself,
 * lru-cache takes room for all of it at once, which for a few dozen caches is a tenth of a server at rest.
 */
export function createCache<K extends {}, V extends {}>(
  max: number,
  options: { dispose?: (value: V, key: K) => void } = {},
): LRUCache<K, V> {
  return new LRUCache<K, V>({ ...options, maxSize: max, sizeCalculation: () => 1 })
}
